// The guest's function for a CALL line.
#pragma once

#include <tuple>

#include "guest/calls/rules.h"
#include "guest/marshal/marshal.h"

namespace guest {

// The function behind a symbol of libcuda.so. F is the type that cuda.h gives the symbol, so a parameter that does not
// fit does not compile.
template <int Id, class F = typename api::Call<Id>::Function>
struct Stub;
template <int Id, class... P>
struct Stub<Id, CUresult(P...)> {
  static CUresult call(P... p) {
    using C = api::Call<Id>;
    if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
    if (const CUresult r = Rules<Id>::refuses_always(p...); r != CUDA_SUCCESS) return r;
    const std::tuple<P...> params(p...);
    Marshal<typename C::Shape> marshal(params);
    const CUresult result = marshal.run(Id, C::way, C::manner, Rules<Id>::refuses(p...));
    if (result == CUDA_SUCCESS) Rules<Id>::learn(marshal.created(), p...);
    return result;
  }
};

}  // namespace guest
