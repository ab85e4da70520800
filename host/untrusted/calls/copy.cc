// Copies. Between host and device CUSTOM because the host's side is a piece of the arena, the record itself or the
// reply, and never an address that the guest names: the driver would copy from any address of this process. Of rows
// because how far they reach is no product of two parameters; either side is memory that the session owns by its device
// address: allocations, and registered pieces of the arena.
#include <cstring>
#include <optional>

#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/stream.h"
#include "host/untrusted/unmarshal.h"
#include "ring/api/records.h"

namespace host::calls {
namespace {

enum class Inline : std::uint8_t { No, InRecord, InReply };

struct Copy {
  CUresult refused = CUDA_SUCCESS;  // broken() included
  CUdeviceptr device = 0;
  void* host = nullptr;
  std::size_t bytes = 0;
  CUstream stream = nullptr;
  bool then_wait = false;
};

// Reads and checks a copy. `where` is the place of bytes that are not in the arena.
Copy read_copy(Request& r, Inline where) {
  const auto record = r.in.read<api::CopyRecord>();
  Copy copy{.device = record.device, .bytes = record.bytes, .then_wait = record.then_wait != 0};
  if (record.arena != ring::absent) {
    copy.host = r.session.arena(record.arena, record.bytes).for_driver();
  } else if (where == Inline::InRecord) {
    copy.host = const_cast<std::byte*>(r.in.take(record.bytes));
  } else if (where == Inline::InReply) {
    copy.host = r.out.reserve(record.bytes);
    if (copy.host != nullptr) std::memset(copy.host, 0, record.bytes);
  }
  if (!r.complete() || copy.host == nullptr || record.then_wait > 1) {
    copy.refused = r.broken();
  } else if (!r.session.ranges.contains(record.device, record.bytes)) {
    copy.refused = CUDA_ERROR_INVALID_VALUE;
  } else {
    copy.refused = find_stream(r, record.stream, copy.stream);
  }
  return copy;
}

// Of an asynchronous copy: a staging chunk's record is executed when the GPU is through with the chunk.
CUresult then_wait(Request& r, const Copy& c, CUresult result) {
  if (result != CUDA_SUCCESS || !c.then_wait) return result;
  return per_thread_or<api::id_of::cuStreamSynchronize>(r, r.session.driver.cuStreamSynchronize)(c.stream);
}

// Rows and slices do not overlap: to the driver a pitch or height of 0 would mean that of the copy, not 0.
bool is_sound(const api::RowsSide& side, const api::CopyRowsRecord& copy) {
  return side.pitch >= copy.width && (copy.depth <= 1 || side.rows >= copy.height);
}

// A side's slice is `rows` times `pitch`; what is copied lies within the session's memory.
bool is_ours(const Request& r, const api::RowsSide& side, const api::CopyRowsRecord& copy) {
  const auto slice = api::product(side.pitch, side.rows);
  if (!slice) return false;
  const auto span = api::span_of_rows(copy.width, copy.height, side.pitch, copy.depth, *slice);
  return span && *span != 0 && r.session.ranges.contains(side.address, *span);
}

// The host's side of such a copy lies in the arena; a copy within the device counts for neither.
void count_copied(Request& r, const api::CopyRowsRecord& copy) {
  const bool from_host = r.session.in_arena(copy.from.address), to_host = r.session.in_arena(copy.to.address);
  const std::uint64_t bytes = copy.width * copy.height * copy.depth;
  if (from_host && !to_host) r.to_device = bytes;
  if (to_host && !from_host) r.from_device = bytes;
}

CUresult read_rows(Request& r, CUDA_MEMCPY3D& copy, CUstream& stream) {
  const auto record = r.in.read<api::CopyRowsRecord>();
  if (!r.complete() || !is_sound(record.to, record) || !is_sound(record.from, record)) return r.broken();
  if (!is_ours(r, record.to, record) || !is_ours(r, record.from, record)) return CUDA_ERROR_INVALID_VALUE;
  count_copied(r, record);
  std::memset(&copy, 0, sizeof copy);
  copy.dstMemoryType = copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.dstDevice = record.to.address, copy.dstPitch = record.to.pitch, copy.dstHeight = record.to.rows;
  copy.srcDevice = record.from.address, copy.srcPitch = record.from.pitch, copy.srcHeight = record.from.rows;
  copy.WidthInBytes = record.width, copy.Height = record.height, copy.Depth = record.depth;
  return find_stream(r, record.stream, stream);
}

template <class F, class... P>
CUresult call(F function, P... p) {
  return function == nullptr ? CUDA_ERROR_NOT_SUPPORTED : function(p...);
}

}  // namespace

CUresult cuMemcpyHtoD_v2(Request& r) {
  const Copy c = read_copy(r, Inline::InRecord);
  if (c.refused != CUDA_SUCCESS) return c.refused;
  r.to_device = c.bytes;
  return per_thread_or<api::id_of::cuMemcpyHtoD_v2>(r, r.session.driver.cuMemcpyHtoD_v2)(c.device, c.host, c.bytes);
}

CUresult cuMemcpyDtoH_v2(Request& r) {
  const Copy c = read_copy(r, Inline::InReply);
  if (c.refused != CUDA_SUCCESS) return c.refused;
  r.from_device = c.bytes;
  return per_thread_or<api::id_of::cuMemcpyDtoH_v2>(r, r.session.driver.cuMemcpyDtoH_v2)(c.host, c.device, c.bytes);
}

// From the record: the driver takes its own copy of pageable memory before it returns.
CUresult cuMemcpyHtoDAsync_v2(Request& r) {
  const Copy c = read_copy(r, Inline::InRecord);
  if (c.refused != CUDA_SUCCESS) return c.refused;
  r.to_device = c.bytes;
  const auto form = per_thread_or<api::id_of::cuMemcpyHtoDAsync_v2>(r, r.session.driver.cuMemcpyHtoDAsync_v2);
  return then_wait(r, c, form(c.device, c.host, c.bytes, c.stream));
}

// To the arena only: a reply would be sent before the bytes are there.
CUresult cuMemcpyDtoHAsync_v2(Request& r) {
  const Copy c = read_copy(r, Inline::No);
  if (c.refused != CUDA_SUCCESS) return c.refused;
  r.from_device = c.bytes;
  const auto form = per_thread_or<api::id_of::cuMemcpyDtoHAsync_v2>(r, r.session.driver.cuMemcpyDtoHAsync_v2);
  return then_wait(r, c, form(c.host, c.device, c.bytes, c.stream));
}

CUresult cuMemcpy3D_v2(Request& r) {
  CUDA_MEMCPY3D copy;
  CUstream stream = nullptr;
  if (const CUresult refused = read_rows(r, copy, stream); refused != CUDA_SUCCESS) return refused;
  return call(per_thread_or<api::id_of::cuMemcpy3D_v2>(r, r.session.driver.cuMemcpy3D_v2), &copy);
}

CUresult cuMemcpy3DAsync_v2(Request& r) {
  CUDA_MEMCPY3D copy;
  CUstream stream = nullptr;
  if (const CUresult refused = read_rows(r, copy, stream); refused != CUDA_SUCCESS) return refused;
  return call(per_thread_or<api::id_of::cuMemcpy3DAsync_v2>(r, r.session.driver.cuMemcpy3DAsync_v2), &copy, stream);
}

}  // namespace host::calls
