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
