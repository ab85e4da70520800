// The backends of the suite: the simulated GPU, loopback and NVIDIA's driver.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace contract {

struct Backend {
  const char* name;  // the name that the expectations use
  // The library of a backend and its environment. library() starts a broker if the backend needs one. `error` is the
  // reason why the library is unavailable, or "".
  struct Library {
    std::string path;
    std::vector<std::pair<std::string, std::string>> environment;
    std::string error;
  };
  Library (*library)();
};

extern const Backend simulated, loopback, real;

// Returns the path of the libcuda.so.1 of this machine's GPU driver, or an empty path.
std::string real_library();
// Sets the libcuda that the worker of loopback uses: "sim" or "auto", as in ivgpud's configuration, or a library's
// path.
void set_gpu(const std::string& gpu);
// Replaces the worker program of the build by another program.
void set_worker(const std::string& program);
// Ends the broker if one was started. If the broker or a worker did not end properly, prints the reason on standard
// output and returns false.
bool end_broker();

}  // namespace contract
