// Fills of rows (cuMemsetD2D*). They are CUSTOM because the length of the memory is not the product of two parameters.
#include <optional>

#include "guest/calls/calls.h"
#include "guest/marshal/custom.h"
#include "ring/api/records.h"

namespace guest::calls {
namespace {

struct Fill {
  std::uint64_t at, pitch, width, height;  // width: in elements
  std::uint32_t value, element_bytes;
  CUstream stream;
};

// The rows' address as the host sees it. Nothing if the rows are not all in one piece of device memory.
std::optional<std::uint64_t> place_of(const Fill& f) {
  const auto row = api::product(f.width, f.element_bytes);
  if (!row || f.at % f.element_bytes != 0) return std::nullopt;
  if (f.height > 1 && (f.pitch < *row || f.pitch % f.element_bytes != 0)) return std::nullopt;
  if (f.width == 0 || f.height == 0) return f.at;  // CUDA then ignores the address
  const auto span = api::span_of_rows(*row, f.height, f.pitch);
  return span ? session()->device_view(f.at, *span) : std::nullopt;
}

CUresult fill(int call, const Fill& f) {
  Context* context = nullptr;
  if (const CUresult r = enter(context, {f.stream}); r != CUDA_SUCCESS) return r;
  const StreamRef stream = resolve_stream(f.stream, *context);
  if (stream.object == nullptr) return no_such(f.stream);
  const auto at = place_of(f);
  if (!at) return CUDA_ERROR_INVALID_VALUE;
  if (f.width == 0 || f.height == 0) return CUDA_SUCCESS;
  const api::FillRowsRecord record{.at = *at,
                                   .pitch = f.pitch,
                                   .width = f.width,
                                   .height = f.height,
                                   .value = f.value,
                                   .stream = reinterpret_cast<std::uint64_t>(f.stream)};
  return cross({.call = call, .context = *context, .stream = &stream}, record).result;
}

}  // namespace

#define FILL_ROWS(bits, Value)                                                                                  \
  CUresult cuMemsetD2D##bits##_v2(CUdeviceptr at, std::size_t pitch, Value value, std::size_t width,            \
                                  std::size_t height) {                                                         \
    return fill(api::id_of::cuMemsetD2D##bits##_v2, {at, pitch, width, height, value, sizeof value, nullptr});  \
  }                                                                                                             \
  CUresult cuMemsetD2D##bits##Async(CUdeviceptr at, std::size_t pitch, Value value, std::size_t width,          \
                                    std::size_t height, CUstream stream) {                                      \
    return fill(api::id_of::cuMemsetD2D##bits##Async, {at, pitch, width, height, value, sizeof value, stream}); \
  }

FILL_ROWS(8, unsigned char)
FILL_ROWS(16, unsigned short)
FILL_ROWS(32, unsigned)

}  // namespace guest::calls
