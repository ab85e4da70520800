// Calls of CUDA 3 with addresses and sizes of 32 bits: the NARROW lines of ring/api/driver.def. Each call forwards to
// its newer version (ring/abi/narrow.h). In a context of the old cuCtxCreate, a call fails if this library does not
// serve the newer version.
//
// An exported name is an ifunc, as in beyond.cc.
#include "host/simgpu/api/cuda_api.h"

#include "host/simgpu/api/driver.h"
#include "host/simgpu/api/module/symbols.h"
#include "ring/abi/narrow.h"
#include "ring/api/entry_points.h"

namespace simgpu {
namespace {

// The context's API version is checked before a fault is reported.
CUresult enter_old_context(bool needs_one) {
  return with_driver([&](Driver& driver) {
    const Context* context = driver.current();
    if (context == nullptr) return needs_one ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
    if (!context->active.load(std::memory_order_acquire)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return cuabi::narrow_works_in(context->api_version) ? driver.fault() : CUDA_ERROR_INVALID_CONTEXT;
  });
}

// F is the type that cuda.h declares for the old call and Newer that of its newer version; `line` is the old call's
// index in api::entry_points.
template <class F, class Newer, std::size_t line>
struct Narrow;
template <class... P, class Newer, std::size_t line>
struct Narrow<CUresult(P...), Newer, line> {
  static constexpr api::EntryPoint form = api::entry_points[line];

  static CUresult call(P... p) {
    static const auto newer = reinterpret_cast<Newer*>(function_of(form.of));
    if constexpr (!form.manner.contextless) {
      const CUresult state = enter_old_context(cuabi::narrow_needs_context(form.name));
      if (const auto answer = cuabi::narrow_answer(form.name, state, p...)) return *answer;
      if (state != CUDA_SUCCESS) return state;
    }
    if (newer == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return cuabi::call_newer(newer, cuabi::narrow_allocates(form.name) ? &cuMemFree_v2 : nullptr, p...);
  }
};

}  // namespace
}  // namespace simgpu

// The loader runs resolvers during relocation, before the sanitizers' runtime is initialised.
#define CALL(...)
#define CUSTOM(...)
#define LOCAL(...)
#define NARROW(fn, since, of, ...)                                                                                  \
  extern "C" __attribute__((no_sanitize("address", "undefined", "thread"))) decltype(&::fn) simgpu_resolve_##fn() { \
    return &simgpu::Narrow<decltype(::fn), decltype(::of), api::line_of(#fn)>::call;                                \
  }                                                                                                                 \
  extern "C" __attribute__((visibility("default"))) decltype(::fn) fn __attribute__((ifunc("simgpu_resolve_" #fn)));
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
