// Calls that fill memory with a value.
#include "host/simgpu/api/cuda_api.h"

#include "host/simgpu/api/memory/rows.h"
#include "host/simgpu/api/stream/streams.h"

using namespace simgpu;

namespace {

CUresult fill(CUstream stream, CUdeviceptr to, std::size_t pitch, std::uint32_t value, std::size_t value_size,
              std::size_t columns, std::size_t rows, Wait wait) {
  return with_context_of(stream, [&](Driver& driver, Context& context) {
    std::size_t width = 0;
    if (__builtin_mul_overflow(columns, value_size, &width)) return CUDA_ERROR_INVALID_VALUE;
    if (rows > 1 && (pitch < width || pitch % value_size != 0)) return CUDA_ERROR_INVALID_VALUE;
    const Fill what{.to = {.start = to, .pitch = pitch},
                    .shape = {.width = width, .height = rows},
                    .pattern = value,
                    .pattern_size = value_size};
    return fill_in_stream(driver, context, stream, what, wait);
  });
}

}  // namespace

// Defines six calls for each width of the value. There are linear fills and fills of rows. Each has a synchronous
// version for the legacy stream, a synchronous version for the per-thread stream (_ptds), and an asynchronous version.
#define FILLS(bits, Value)                                                                                  \
  CUresult cuMemsetD##bits##_v2(CUdeviceptr to, Value value, std::size_t count) {                           \
    return fill(CU_STREAM_LEGACY, to, 0, value, sizeof value, count, 1, Wait::Always);                      \
  }                                                                                                         \
  CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr to, Value value, std::size_t count) {                      \
    return fill(CU_STREAM_PER_THREAD, to, 0, value, sizeof value, count, 1, Wait::Always);                  \
  }                                                                                                         \
  CUresult cuMemsetD##bits##Async(CUdeviceptr to, Value value, std::size_t count, CUstream stream) {        \
    return fill(stream, to, 0, value, sizeof value, count, 1, Wait::AsCudaSays);                            \
  }                                                                                                         \
  CUresult cuMemsetD##bits##Async_ptsz(CUdeviceptr to, Value value, std::size_t count, CUstream stream) {   \
    return fill(own(stream), to, 0, value, sizeof value, count, 1, Wait::AsCudaSays);                       \
  }                                                                                                         \
  CUresult cuMemsetD2D##bits##_v2(CUdeviceptr to, std::size_t pitch, Value value, std::size_t width,        \
                                  std::size_t height) {                                                     \
    return fill(CU_STREAM_LEGACY, to, pitch, value, sizeof value, width, height, Wait::Always);             \
  }                                                                                                         \
  CUresult cuMemsetD2D##bits##_v2_ptds(CUdeviceptr to, std::size_t pitch, Value value, std::size_t width,   \
                                       std::size_t height) {                                                \
    return fill(CU_STREAM_PER_THREAD, to, pitch, value, sizeof value, width, height, Wait::Always);         \
  }                                                                                                         \
  CUresult cuMemsetD2D##bits##Async(CUdeviceptr to, std::size_t pitch, Value value, std::size_t width,      \
                                    std::size_t height, CUstream stream) {                                  \
    return fill(stream, to, pitch, value, sizeof value, width, height, Wait::AsCudaSays);                   \
  }                                                                                                         \
  CUresult cuMemsetD2D##bits##Async_ptsz(CUdeviceptr to, std::size_t pitch, Value value, std::size_t width, \
                                         std::size_t height, CUstream stream) {                             \
    return fill(own(stream), to, pitch, value, sizeof value, width, height, Wait::AsCudaSays);              \
  }

FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned)
