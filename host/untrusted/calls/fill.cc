// Fills of rows. CUSTOM because how far they reach is no product of two parameters.
#include <optional>

#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/stream.h"
#include "host/untrusted/unmarshal.h"
#include "ring/api/records.h"

namespace host::calls {
namespace {

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

template <class F, class... P>
CUresult call(F function, P... p) {
  return function == nullptr ? CUDA_ERROR_NOT_SUPPORTED : function(p...);
}

}  // namespace

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

}  // namespace host::calls
