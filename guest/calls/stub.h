// The guest's function for a CALL line: stubs.cc has all of them, so that what names one does not compile it.
#pragma once

#include "ring/api/call.h"

namespace guest {

// The function behind a symbol of libcuda.so. F is the type that cuda.h gives the symbol, so a parameter that does not
// fit does not compile.
template <int Id, class F = typename api::Call<Id>::Function>
struct Stub;
template <int Id, class... P>
struct Stub<Id, CUresult(P...)> {
  static CUresult call(P... p);
};

}  // namespace guest
