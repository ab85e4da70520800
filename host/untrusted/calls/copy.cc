// Copies. Copies between host and device are handwritten because the host's side is in the arena, the record or the
// reply. The host's side is never an address from the guest, since the driver would copy from any address of this
// process.
#include "host/untrusted/calls/calls.h"

namespace host::calls {
namespace {

template <class R>
void* host_side(const DecodedRequest<R>& t) {
  return t.inline_bytes() != nullptr ? t.inline_bytes() : t.arena().for_driver();
}

template <class T>
CUstream stream_of(const T& t) {
  return t.template handle<CUstream>(&api::CopyRecord::stream);
}

// Waits for an asynchronous copy if its record requests the wait. The record of a staging chunk must not count as
// executed while the GPU still uses the chunk.
template <class R>
CUresult then_wait(const DecodedRequest<R>& t, CUresult result) {
  if (result != CUDA_SUCCESS || t.record.then_wait == 0) return result;
  result = per_thread_or<api::id_of::cuStreamSynchronize>(t.request, t.driver().cuStreamSynchronize)(stream_of(t));
  if (result == CUDA_SUCCESS && t.session().memory.shadow_copies.any()) t.session().memory.shadow_copies.down();
  return result;
}

}  // namespace

CUresult cuMemcpyHtoD_v2(call_of::cuMemcpyHtoD_v2& a) {
  a.request.to_device = a.record.bytes;
  return a.call(a.record.device, host_side(a), a.record.bytes);
}

CUresult cuMemcpyDtoH_v2(call_of::cuMemcpyDtoH_v2& a) {
  a.request.from_device = a.record.bytes;
  return a.call(host_side(a), a.record.device, a.record.bytes);
}

// The bytes may be in the record, since the driver copies pageable memory before the call returns.
CUresult cuMemcpyHtoDAsync_v2(call_of::cuMemcpyHtoDAsync_v2& a) {
  a.request.to_device = a.record.bytes;
  return then_wait(a, a.call(a.record.device, host_side(a), a.record.bytes, stream_of(a)));
}

CUresult cuMemcpyDtoHAsync_v2(call_of::cuMemcpyDtoHAsync_v2& a) {
  a.request.from_device = a.record.bytes;
  return then_wait(a, a.call(host_side(a), a.record.device, a.record.bytes, stream_of(a)));
}

}  // namespace host::calls
