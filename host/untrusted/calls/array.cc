// Copies from or to an array.
#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/copy_side.h"

namespace host::calls {
namespace {

using Record = api::CopyTexelsRecord;
template <class R>
void count_texels(const DecodedRequest<R>& t) {
  const Record& copy = t.record;
  const std::uint64_t bytes = copy.width * copy.height * copy.depth;
  if (copy.from.array == 0 && t.session().arena.holds(copy.from.address)) t.request.to_device = bytes;
  if (copy.to.array == 0 && t.session().arena.holds(copy.to.address)) t.request.from_device = bytes;
}

}  // namespace

// All copies from or to an array arrive as one of two calls, in the driver's most general form.
CUresult cuMemcpyAtoD_v2(call_of::cuMemcpyAtoD_v2& a) {
  count_texels(a);
  const CUDA_MEMCPY3D copy = copy_of(a);
  return per_thread_or<api::id_of::cuMemcpy3D_v2>(a.request, a.driver().cuMemcpy3D_v2)(&copy);
}

CUresult cuMemcpyHtoAAsync_v2(call_of::cuMemcpyHtoAAsync_v2& a) {
  count_texels(a);
  const CUDA_MEMCPY3D copy = copy_of(a);
  const auto function = per_thread_or<api::id_of::cuMemcpy3DAsync_v2>(a.request, a.driver().cuMemcpy3DAsync_v2);
  return function(&copy, a.handle<CUstream>(&Record::stream));
}

}  // namespace host::calls
