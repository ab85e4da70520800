// The simulated GPU behind the scenarios.
#include <cstdio>
#include <cstdlib>

#include "tests/loopback/in_process.h"

const host::Driver& loopback::backend() {
  static const host::Driver* const driver = [] {
    std::string error;
    auto loaded = host::Driver::load(IVGPU_SIMULATED_GPU, error);
    if (loaded == nullptr) {
      std::fprintf(stderr, "%s\n", error.c_str());
      std::abort();
    }
    return loaded.release();
  }();
  return *driver;
}

// LeakSanitizer of clang 14 reads wrong bounds for the thread-local storage of a library that is loaded late, on the simulated
// GPU's thread for callbacks, and ends with signal 11. The strict driver's tests look for the same leaks.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }  // NOLINT(bugprone-reserved-identifier)
