// The backends that the suite asks: the simulated GPU, loopback and the real driver.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace contract {

struct Backend {
  const char* name;  // as the expectations name it
  // A backend's library, and the environment that it needs. library() starts a broker if the backend needs one.
  // `error`: why the library cannot be had, or empty.
  struct Library {
    std::string path;
    std::vector<std::pair<std::string, std::string>> environment;
    std::string error;
  };
  Library (*library)();
};

extern const Backend simulated, loopback, real;

// The libcuda.so.1 of this machine's GPU driver, or empty.
std::string real_library();
// Sets the libcuda that loopback's worker drives: "sim" or "auto", as in ivgpud's configuration, or a library's path.
void set_gpu(const std::string& gpu);
// Sets the worker program, in place of the one that was built.
void set_worker(const std::string& program);
// Ends the broker, if one was started. False: it or a worker did not end in order, and standard output says why.
bool end_broker();

}  // namespace contract
