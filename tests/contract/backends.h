// The suite's backends: the simulated GPU, loopback and the real driver.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace contract {

struct Backend {
  const char* name;  // as the expectations name it
  // A backend's library and its environment. library() starts a broker if needed. `error`: why the library is
  // unavailable, or "".
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
// Ends the broker, if one was started. False, with the reason on standard output, if it or a worker did not end in
// order.
bool end_broker();

}  // namespace contract
