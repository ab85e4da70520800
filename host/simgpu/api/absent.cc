// Exports the entry points of cuda.h that the simulated GPU does not serve, so that no program fails with an unresolved
// symbol. Each of these functions returns NOT_SUPPORTED, and reports its first call if IVGPU_SIM_WARN is set.
//
// cuGetProcAddress returns these functions as well, as in the guest library (docs/design/016-refusals-by-name.md). If
// it did not find a name, the runtime would report "requires newer driver".
//
// The definitions are weak, so that the definition of a served call replaces them. A section of their own identifies
// them. This file must not include the declarations of cuda.h.
#include "host/simgpu/api/absent.h"

#include <atomic>
#include <string>

#include "host/simgpu/api/log.h"

namespace simgpu {

// The linker sets these bounds of the section.
extern "C" {
extern const char first_absent[] __asm__("__start_simgpu_absent") __attribute__((visibility("hidden")));
extern const char behind_absent[] __asm__("__stop_simgpu_absent") __attribute__((visibility("hidden")));
}

bool is_absent(const void* function) {
  const auto* at = static_cast<const char*>(function);
  return at >= first_absent && at < behind_absent;
}

namespace {

int refuse(const char* name, std::atomic<bool>& reported) {
  constexpr int not_supported = 801;  // CUDA_ERROR_NOT_SUPPORTED
  if (warnings_wanted() && !reported.exchange(true, std::memory_order_relaxed))
    report(std::string(name) +
           " is served neither here nor by `ivgpu run` and in a VM; `ivgpu coverage PROGRAM` shows " +
           "the state of each call that a program makes");
  return not_supported;
}

}  // namespace
}  // namespace simgpu

#define DEFINE(symbol)                                                                             \
  extern "C" __attribute__((weak, visibility("default"), section("simgpu_absent"))) int symbol() { \
    static constinit std::atomic<bool> reported{false};                                            \
    return simgpu::refuse(#symbol, reported);                                                      \
  }
#define CALL(id, symbol, ...) DEFINE(symbol)
#define CUSTOM(id, symbol, ...) DEFINE(symbol)
#define LOCAL(symbol, ...) DEFINE(symbol)
#define VARIANT(symbol, ...) DEFINE(symbol)
#define ABSENT(symbol, ...) DEFINE(symbol)
#include "ring/api/driver.def"
