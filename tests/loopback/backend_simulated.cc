// Chooses the simulated GPU for the scenarios.
#include <cstdio>
#include <cstdlib>

#include "tests/loopback/in_process.h"

const host::Driver& loopback::backend() {
  static const host::Driver* const driver = [] {
    auto loaded = host::Driver::load(IVGPU_SIMULATED_GPU);
    if (!loaded) {
      std::fprintf(stderr, "%s\n", loaded.error().message.c_str());
      std::abort();
    }
    return loaded->release();
  }();
  return *driver;
}

// On the simulated GPU's callback thread, clang 14's LeakSanitizer mislocates the thread-local storage of a late-loaded
// library and crashes. Tests with the strict driver find the same leaks.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }  // NOLINT(bugprone-reserved-identifier)
