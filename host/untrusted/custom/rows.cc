// Copies and fills of rows. CUSTOM because how far they reach is no product of two parameters. Every side is memory
// that the session owns by its device address: allocations, and registered pieces of the arena.
#include <cstring>
#include <optional>

#include "host/untrusted/custom/custom.h"
#include "host/untrusted/unmarshal.h"
#include "ring/api/records.h"

namespace host::custom {
namespace {

// The driver's stream behind a slot; CUDA_ERROR_INVALID_HANDLE when the session has no such stream.
CUresult find_stream(Request& r, std::uint64_t slot, CUstream& stream) {
  stream = reinterpret_cast<CUstream>(slot);
  if (api::special_stream(slot)) return CUDA_SUCCESS;
  stream = static_cast<CUstream>(r.session.objects.find(slot, api::Handle::Stream));
  return stream == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

// What a fill's record says, checked.
CUresult read_fill(Request& r, std::uint64_t element_bytes, api::FillRowsRecord& record, CUstream& stream) {
  record = r.in.read<api::FillRowsRecord>();
  if (!r.complete() || record.value >> (8 * element_bytes) != 0) return r.broken();
  const auto row = api::product(record.width, element_bytes);
  if (row && record.height > 1 && record.pitch < *row) return r.broken();
  const auto span = row ? api::span_of_rows(*row, record.height, record.pitch) : std::nullopt;
  if (!span || *span == 0 || !r.session.ranges.contains(record.at, *span)) return CUDA_ERROR_INVALID_VALUE;
  return find_stream(r, record.stream, stream);
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

CUresult read_copy(Request& r, CUDA_MEMCPY3D& copy, CUstream& stream) {
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

CUresult cuMemcpy3D_v2(Request& r) {
  CUDA_MEMCPY3D copy;
  CUstream stream = nullptr;
  if (const CUresult refused = read_copy(r, copy, stream); refused != CUDA_SUCCESS) return refused;
  return call(per_thread_or<api::id_of::cuMemcpy3D_v2>(r, r.session.driver.cuMemcpy3D_v2), &copy);
}

CUresult cuMemcpy3DAsync_v2(Request& r) {
  CUDA_MEMCPY3D copy;
  CUstream stream = nullptr;
  if (const CUresult refused = read_copy(r, copy, stream); refused != CUDA_SUCCESS) return refused;
  return call(per_thread_or<api::id_of::cuMemcpy3DAsync_v2>(r, r.session.driver.cuMemcpy3DAsync_v2), &copy, stream);
}

#define FILL_ROWS(bits, Value)                                                                                       \
  CUresult cuMemsetD2D##bits##_v2(Request& r) {                                                                      \
    api::FillRowsRecord f{};                                                                                         \
    CUstream stream = nullptr;                                                                                       \
    if (const CUresult refused = read_fill(r, sizeof(Value), f, stream); refused != CUDA_SUCCESS) return refused;    \
    const auto form = per_thread_or<api::id_of::cuMemsetD2D##bits##_v2>(r, r.session.driver.cuMemsetD2D##bits##_v2); \
    return call(form, f.at, f.pitch, static_cast<Value>(f.value), f.width, f.height);                                \
  }                                                                                                                  \
  CUresult cuMemsetD2D##bits##Async(Request& r) {                                                                    \
    api::FillRowsRecord f{};                                                                                         \
    CUstream stream = nullptr;                                                                                       \
    if (const CUresult refused = read_fill(r, sizeof(Value), f, stream); refused != CUDA_SUCCESS) return refused;    \
    const auto form =                                                                                                \
        per_thread_or<api::id_of::cuMemsetD2D##bits##Async>(r, r.session.driver.cuMemsetD2D##bits##Async);           \
    return call(form, f.at, f.pitch, static_cast<Value>(f.value), f.width, f.height, stream);                        \
  }

FILL_ROWS(8, unsigned char)
FILL_ROWS(16, unsigned short)
FILL_ROWS(32, unsigned)

}  // namespace host::custom
