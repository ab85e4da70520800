// The guest's functions for the NARROW lines: CUDA 3's forms with 32-bit addresses and sizes, served by their newer
// forms (ring/abi/narrow.h). In a context of the old cuCtxCreate, a form refuses if its newer form does.
#pragma once

#include <cstddef>

#include "guest/calls/calls.h"
#include "guest/calls/refusal.h"
#include "guest/calls/stub.h"
#include "guest/process/context.h"
#include "ring/abi/narrow.h"
#include "ring/api/entry_points.h"

namespace guest::calls {

// The newer forms. Null: not served.
namespace newer {
#define CALL(id, fn, ...) inline constexpr auto fn = &Stub<id>::call;
#define CUSTOM(id, fn, ...) inline constexpr auto fn = &calls::fn;
#define LOCAL(fn, ...) inline constexpr auto fn = &calls::fn;
#define NARROW(...)
#define VARIANT(...)
#define ABSENT(fn, ...) inline constexpr decltype(&::fn) fn = nullptr;
#include "ring/api/driver.def"
}  // namespace newer

// The checks at the start of a NARROW call. The driver checks the version before a fault.
inline CUresult enter_old_context(bool needs_one) {
  Context* context = nullptr;
  const CUresult entered = enter(context);
  if (context == nullptr) return entered == CUDA_ERROR_INVALID_CONTEXT && !needs_one ? CUDA_SUCCESS : entered;
  if (context->lives() && !cuabi::narrow_works_in(context->api_version)) return CUDA_ERROR_INVALID_CONTEXT;
  return entered;
}

// F: the form's type in cuda.h; `line` and `newer_line`: the lines of both forms in api::entry_points.
template <class F, auto newer, std::size_t line, std::size_t newer_line>
struct Narrow;
template <class... P, auto newer, std::size_t line, std::size_t newer_line>
struct Narrow<CUresult(P...), newer, line, newer_line> {
  static constexpr api::EntryPoint form = api::entry_points[line];

  static CUresult call(P... p) {
    if constexpr (!form.manner.contextless) {
      const CUresult state = enter_old_context(cuabi::narrow_needs_context(form.name));
      if (const auto answer = cuabi::narrow_answer(form.name, state, p...)) return *answer;
      if (state != CUDA_SUCCESS) return state;
    }
    if constexpr (newer == nullptr)
      return refuse(newer_line);
    else
      return cuabi::call_newer(newer, cuabi::narrow_allocates(form.name) ? &calls::cuMemFree_v2 : nullptr, p...);
  }
};

// The function of each NARROW line, by its symbol.
namespace narrow {
#define CALL(...)
#define CUSTOM(...)
#define LOCAL(...)
#define NARROW(fn, since, of, ...) \
  inline constexpr auto fn = &Narrow<decltype(::fn), newer::of, api::line_of(#fn), api::line_of(#of)>::call;
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
}  // namespace narrow

}  // namespace guest::calls
