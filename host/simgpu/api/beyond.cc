// Exports the calls of host/simgpu/api/beyond.def, which the guest library refuses. Each exported function reports its
// first call if IVGPU_SIM_WARN is set, and forwards every call to the function that serves it.
//
// An exported name is an ifunc, as in guest/shim/libcuda.cc, with the type that cuda.h declares.
#pragma GCC visibility push(default)
#include "ring/api/cuda.h"
#pragma GCC visibility pop

#include <atomic>
#include <string>

#include "host/simgpu/api/log.h"

namespace simgpu {
namespace {

void report_beyond(const char* name) {
  report(name +
         std::string(" is served here, but refused by `ivgpu run` and in a VM; `ivgpu coverage PROGRAM` shows the "
                     "state of each call that a program makes"));
}

template <auto function, class Symbol>
struct Beyond;
template <class... P, CUresult (*function)(P...), class Symbol>
struct Beyond<function, Symbol> {
  static CUresult call(P... p) {
    static std::atomic<bool> reported{false};
    if (warnings_wanted() && !reported.exchange(true, std::memory_order_relaxed)) report_beyond(Symbol::name);
    return function(p...);
  }
};

}  // namespace
}  // namespace simgpu

// Declares the functions that serve the calls. host/simgpu/api/cuda_api.h gives the definitions the same names.
#define BEYOND(fn) extern "C" decltype(::fn) simgpu_##fn;
#include "host/simgpu/api/beyond.def"

// The loader runs resolvers during relocation, before the sanitizers' runtime is initialised.
#define BEYOND(fn)                                                                                                  \
  namespace {                                                                                                       \
  struct Symbol_##fn {                                                                                              \
    static constexpr const char* name = #fn;                                                                        \
  };                                                                                                                \
  }                                                                                                                 \
  extern "C" __attribute__((no_sanitize("address", "undefined", "thread"))) decltype(&::fn) simgpu_resolve_##fn() { \
    return &simgpu::Beyond<&::simgpu_##fn, Symbol_##fn>::call;                                                      \
  }                                                                                                                 \
  extern "C" __attribute__((visibility("default"))) decltype(::fn) fn __attribute__((ifunc("simgpu_resolve_" #fn)));
#include "host/simgpu/api/beyond.def"
