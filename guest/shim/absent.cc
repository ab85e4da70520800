// Symbols that are exported only because libraries look them up by name. Each function refuses, and reports its first
// call in the log. This file does not include cuda.h, because the functions ignore all parameters.
#include <atomic>

#include "guest/base/report_refusal.h"

namespace guest {
namespace {

constexpr int not_supported = 801;  // CUDA_ERROR_NOT_SUPPORTED

int refuse(const char* symbol, const char* why, std::atomic<bool>& reported) {
  if (!reported.exchange(true)) report_refusal(symbol, why);
  return not_supported;
}

}  // namespace
}  // namespace guest

#define CALL(...)
#define CUSTOM(...)
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(fn, since, why)                                 \
  extern "C" __attribute__((visibility("default"))) int fn() { \
    static std::atomic<bool> reported{false};                  \
    return guest::refuse(#fn, why, reported);                  \
  }
#include "ring/api/driver.def"
