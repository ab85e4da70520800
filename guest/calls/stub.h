// The guest's function for a CALL line. stubs.cc defines all of these functions, so that other files need not compile
// them.
#pragma once

#include "ring/api/call.h"

namespace guest {

// The function behind a symbol of libcuda.so. F is the symbol's type in cuda.h, so a wrong parameter type does not
// compile.
template <int Id, class F = typename api::Call<Id>::Function>
struct Stub;
template <int Id, class... P>
struct Stub<Id, CUresult(P...)> {
  static CUresult call(P... p);
};

}  // namespace guest
