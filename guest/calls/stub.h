// The guest's function for a CALL line. stubs.cc defines all of them, so that their users need not compile them.
#pragma once

#include "ring/api/call.h"

namespace guest {

// The function behind a symbol of libcuda.so. F is the symbol's type in cuda.h, so a parameter that does not fit does
// not compile.
template <int Id, class F = typename api::Call<Id>::Function>
struct Stub;
template <int Id, class... P>
struct Stub<Id, CUresult(P...)> {
  static CUresult call(P... p);
};

}  // namespace guest
