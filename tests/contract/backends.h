// Whom the suite asks.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace contract {

struct Backend {
  const char* name;  // as the expectations name it
  // The library, and what its environment must hold. Starts a broker where one is needed; `error` says why it is not to
  // be had.
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
// What the loopback's worker drives: "sim" or "auto" as ivgpud's configuration takes them, or a library's path.
void set_gpu(const std::string& gpu);
// The program that serves a process, instead of the one that was built.
void set_worker(const std::string& program);
// Ends the broker, if one was started; false, and why on standard output, where it or a worker did not end in order.
bool end_broker();

}  // namespace contract
