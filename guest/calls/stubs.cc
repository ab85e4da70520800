#include <tuple>

#include "guest/calls/rules.h"
#include "guest/calls/stub.h"
#include "guest/marshal/marshal.h"

namespace guest {

template <int Id, class... P>
CUresult Stub<Id, CUresult(P...)>::call(P... p) {
  using C = api::Call<Id>;
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (const CUresult r = Rules<Id>::refuses_always(p...); r != CUDA_SUCCESS) return r;
  if constexpr (requires { Rules<Id>::answer(p...); })
    if (const auto known = Rules<Id>::answer(p...)) return *known;
  const std::tuple<P...> params(p...);
  Marshal<typename C::Shape> marshal(params);
  const CUresult result = marshal.run(Id, C::way, C::manner, Rules<Id>::refuses(p...));
  if (result == CUDA_SUCCESS) Rules<Id>::learn(marshal.created(), p...);
  return result;
}

#define CALL(id, fn, ...) template struct Stub<id>;
#define CUSTOM(...)
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"

}  // namespace guest
