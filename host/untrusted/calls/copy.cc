// Copies. Those between host and device are CUSTOM because the host's side is in the arena, the record or the reply. It
// is never an address from the guest, since the driver would copy from any address of this process. Copies of rows are
// CUSTOM because their length in memory is not the product of two parameters. Their sides are device addresses that the
// session owns: allocations, and registered pieces of the arena.
#include <cstring>

#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/copy_side.h"

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

// Waits for an asynchronous copy if its record asks for that. The record of a staging chunk must not count as executed
// while the GPU still uses the chunk.
template <class R>
CUresult then_wait(const DecodedRequest<R>& t, CUresult result) {
  if (result != CUDA_SUCCESS || t.record.then_wait == 0) return result;
  result = per_thread_or<api::id_of::cuStreamSynchronize>(t.request, t.driver().cuStreamSynchronize)(stream_of(t));
  if (result == CUDA_SUCCESS && t.session().memory.shadow_copies.any()) t.session().memory.shadow_copies.down();
  return result;
}

// Counts the bytes of a copy of rows. The host's side is in the arena. A copy within the device counts in neither
// direction.
template <class R>
void count_rows(const DecodedRequest<R>& t) {
  const api::CopyRowsRecord& copy = t.record;
  const bool from_host = t.session().arena.holds(copy.from.address), to_host = t.session().arena.holds(copy.to.address);
  const std::uint64_t bytes = copy.width * copy.height * copy.depth;
  if (from_host && !to_host) t.request.to_device = bytes;
  if (to_host && !from_host) t.request.from_device = bytes;
}

template <class R>
CUDA_MEMCPY3D rows_of(const DecodedRequest<R>& t) {
  const api::CopyRowsRecord& record = t.record;
  CUDA_MEMCPY3D copy;
  std::memset(&copy, 0, sizeof copy);
  set_sides(copy, side_of(t.session(), record.to.address), side_of(t.session(), record.from.address));
  copy.dstPitch = record.to.pitch, copy.dstHeight = record.to.rows;
  copy.srcPitch = record.from.pitch, copy.srcHeight = record.from.rows;
  copy.WidthInBytes = record.width, copy.Height = record.height, copy.Depth = record.depth;
  return copy;
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

// The bytes may be in the record, since the driver copies pageable memory before it returns.
CUresult cuMemcpyHtoDAsync_v2(call_of::cuMemcpyHtoDAsync_v2& a) {
  a.request.to_device = a.record.bytes;
  return then_wait(a, a.call(a.record.device, host_side(a), a.record.bytes, stream_of(a)));
}

CUresult cuMemcpyDtoHAsync_v2(call_of::cuMemcpyDtoHAsync_v2& a) {
  a.request.from_device = a.record.bytes;
  return then_wait(a, a.call(host_side(a), a.record.device, a.record.bytes, stream_of(a)));
}

CUresult cuMemcpy3D_v2(call_of::cuMemcpy3D_v2& a) {
  count_rows(a);
  const CUDA_MEMCPY3D copy = rows_of(a);
  return a.call(&copy);
}

CUresult cuMemcpy3DAsync_v2(call_of::cuMemcpy3DAsync_v2& a) {
  count_rows(a);
  const CUDA_MEMCPY3D copy = rows_of(a);
  return a.call(&copy, a.handle<CUstream>(&api::CopyRowsRecord::stream));
}

}  // namespace host::calls
