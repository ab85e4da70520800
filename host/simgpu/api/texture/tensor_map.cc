// Tensor maps: descriptions of tensors in memory for the copy engine of newer GPUs. Encoding a map is a pure function
// of the arguments. The checks follow the rules of an H200, which refuses packed values and their swizzle modes. The
// 128 bytes have a private format, because no kernel of the simulation reads them
// (CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED is 0).
#include "host/simgpu/api/cuda_api.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "host/simgpu/api/device/device.h"
#include "host/simgpu/api/driver.h"

using namespace simgpu;

namespace {

constexpr std::uint32_t most_dimensions = 5;

// The fields that all kinds of maps have in common. A map consists of these bytes.
struct Description {
  std::uint32_t rank;
  std::uint64_t address;
  std::uint8_t type, interleave, swizzle, promotion, fill;
  std::uint32_t dimensions[most_dimensions];   // size minus 1, since a size may be 2^32
  std::uint32_t strides[most_dimensions - 1];  // in units of 16 bytes
  std::uint8_t steps[most_dimensions];
  std::int16_t box[6];  // size of a tile, or corners of a box of pixels
  std::uint32_t channels, pixels;
};
static_assert(sizeof(Description) <= sizeof(CUtensorMap));

struct Tensor {
  CUtensorMap* map;
  CUtensorMapDataType type;
  std::uint32_t rank;
  void* address;
  const cuuint64_t* dimensions;
  const cuuint64_t* strides;
  const cuuint32_t* steps;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion promotion;
  CUtensorMapFloatOOBfill fill;
};

bool is_floating(CUtensorMapDataType type) {
  return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

// Returns the size of this number of values in bytes.
std::uint64_t bytes_of(CUtensorMapDataType type, std::uint64_t values) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8: return values;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16: return 2 * values;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64: return 8 * values;
    default: return 4 * values;
  }
}

template <class T>
bool between(T value, T least, T most) {
  return value >= least && value <= most;
}

bool are_enums(const Tensor& t) {
  return between(t.type, CU_TENSOR_MAP_DATA_TYPE_UINT8, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ) &&
         between(t.interleave, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_INTERLEAVE_32B) &&
         between(t.swizzle, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_128B) &&
         between(t.promotion, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_256B) &&
         between(t.fill, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
}

bool is_aligned(const void* pointer, std::uintptr_t to) { return reinterpret_cast<std::uintptr_t>(pointer) % to == 0; }

// Returns the required alignment of addresses and strides in bytes.
std::uint64_t granularity(CUtensorMapInterleave interleave) {
  return interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
}

bool are_dimensions(const Tensor& t) {
  constexpr std::uint64_t most = std::uint64_t{1} << 32, most_stride = std::uint64_t{1} << 40;
  for (std::uint32_t i = 0; i < t.rank; ++i)
    if (t.dimensions[i] == 0 || t.dimensions[i] > most) return false;
  for (std::uint32_t i = 0; i + 1 < t.rank; ++i)
    if (t.strides[i] % granularity(t.interleave) != 0 || t.strides[i] >= most_stride) return false;
  return true;
}

bool are_steps(const Tensor& t) {
  return std::all_of(t.steps, t.steps + t.rank, [](cuuint32_t step) { return step >= 1 && step <= 8; });
}

// Checks that the innermost dimension of a box fits into the span within which its bytes are swizzled.
bool fits_swizzle(const Tensor& t, std::uint64_t inner) {
  if (t.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) return true;
  const std::uint64_t bytes = bytes_of(t.type, inner);
  if (bytes % 16 != 0) return false;
  switch (t.swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_NONE: return true;
    case CU_TENSOR_MAP_SWIZZLE_32B: return bytes <= 32;
    case CU_TENSOR_MAP_SWIZZLE_64B: return bytes <= 64;
    default: return bytes <= 128;
  }
}

bool is_tensor(const Tensor& t, std::uint32_t least_rank) {
  if (t.map == nullptr || !are_enums(t)) return false;
  if (t.rank < least_rank || t.rank > most_dimensions) return false;
  if (t.dimensions == nullptr || t.strides == nullptr || t.steps == nullptr) return false;
  if (t.fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE && !is_floating(t.type)) return false;
  return is_aligned(t.address, granularity(t.interleave)) && are_dimensions(t) && are_steps(t);
}

Description described(const Tensor& t) {
  Description d{};
  d.rank = t.rank;
  d.address = reinterpret_cast<std::uintptr_t>(t.address);
  d.type = static_cast<std::uint8_t>(t.type);
  d.interleave = static_cast<std::uint8_t>(t.interleave);
  d.swizzle = static_cast<std::uint8_t>(t.swizzle);
  d.promotion = static_cast<std::uint8_t>(t.promotion);
  d.fill = static_cast<std::uint8_t>(t.fill);
  for (std::uint32_t i = 0; i < t.rank; ++i) {
    d.dimensions[i] = static_cast<std::uint32_t>(t.dimensions[i] - 1);
    if (i + 1 < t.rank) d.strides[i] = static_cast<std::uint32_t>(t.strides[i] / 16);
    d.steps[i] = static_cast<std::uint8_t>(t.steps[i]);
  }
  return d;
}

CUresult write(CUtensorMap* map, const Description& d) {
  std::memset(map, 0, sizeof *map);
  std::memcpy(map, &d, sizeof d);
  return CUDA_SUCCESS;
}

// Checks the corners of a box of pixels. The number of corner dimensions follows from the map's rank.
bool are_corners(const Tensor& t, std::span<const int> lower, std::span<const int> upper) {
  constexpr int most[] = {32768, 128, 16};
  const int bound = most[lower.size() - 1];
  const auto inside = [bound](int corner) { return corner >= -bound && corner < bound; };
  for (std::size_t i = 0; i < lower.size(); ++i) {
    if (!inside(lower[i]) || !inside(upper[i])) return false;
    // The corners {D, H, W} belong to dimensions 3, 2 and 1 of the tensor.
    const auto size = static_cast<std::int64_t>(t.dimensions[lower.size() - i]);
    if (size + upper[i] - lower[i] < 0) return false;
  }
  return true;
}

// Checks the size of a box. A whole box is copied to shared memory, so the box must fit there.
bool is_box(const Context& context, CUtensorMapDataType type, std::span<const cuuint32_t> box) {
  std::uint64_t values = 1;
  for (const cuuint32_t n : box) {
    if (!between(n, 1U, 256U)) return false;
    values *= n;  // the product of five factors has at most 40 bits
  }
  const auto room = device_attribute(context.device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  return bytes_of(type, values) <= static_cast<std::uint64_t>(room.value_or(0));
}

struct Pixels {
  std::span<const int> lower, upper;
  std::uint32_t channels, pixels;
};

CUresult encode_pixels(const Tensor& t, const Pixels& p) {
  constexpr std::uint32_t most_channels = 256, most_pixels = 1024;
  const bool sizes = between(p.channels, 1U, most_channels) && between(p.pixels, 1U, most_pixels);
  if (!are_corners(t, p.lower, p.upper) || !sizes) return CUDA_ERROR_INVALID_VALUE;
  if (!fits_swizzle(t, p.channels)) return CUDA_ERROR_INVALID_VALUE;
  Description d = described(t);
  std::transform(p.lower.begin(), p.lower.end(), d.box, [](int c) { return static_cast<std::int16_t>(c); });
  std::transform(p.upper.begin(), p.upper.end(), d.box + 3, [](int c) { return static_cast<std::int16_t>(c); });
  d.channels = p.channels;
  d.pixels = p.pixels;
  return write(t.map, d);
}

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
                                void* globalAddress, const cuuint64_t* globalDim, const cuuint64_t* globalStrides,
                                const cuuint32_t* boxDim, const cuuint32_t* elementStrides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill) {
  const Tensor tensor{tensorMap,      tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
                      elementStrides, interleave,     swizzle,    l2Promotion,   oobFill};
  return with_context([&](Driver&, Context& context) {
    const std::uint32_t least_rank = interleave == CU_TENSOR_MAP_INTERLEAVE_NONE ? 1 : 3;
    if (!is_tensor(tensor, least_rank) || boxDim == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::span box(boxDim, tensorRank);
    if (!is_box(context, tensorDataType, box) || !fits_swizzle(tensor, box[0])) return CUDA_ERROR_INVALID_VALUE;
    Description d = described(tensor);
    for (std::uint32_t i = 0; i < tensorRank; ++i) d.box[i] = static_cast<std::int16_t>(box[i]);
    return write(tensorMap, d);
  });
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
                                 void* globalAddress, const cuuint64_t* globalDim, const cuuint64_t* globalStrides,
                                 const int* pixelBoxLowerCorner, const int* pixelBoxUpperCorner,
                                 cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
                                 const cuuint32_t* elementStrides, CUtensorMapInterleave interleave,
                                 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
                                 CUtensorMapFloatOOBfill oobFill) {
  const Tensor tensor{tensorMap,      tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
                      elementStrides, interleave,     swizzle,    l2Promotion,   oobFill};
  return with_context([&](Driver&, Context&) {
    if (!is_tensor(tensor, 3) || pixelBoxLowerCorner == nullptr || pixelBoxUpperCorner == nullptr)
      return CUDA_ERROR_INVALID_VALUE;
    const std::size_t corners = tensorRank - 2;
    return encode_pixels(tensor, {.lower = {pixelBoxLowerCorner, corners},
                                  .upper = {pixelBoxUpperCorner, corners},
                                  .channels = channelsPerPixel,
                                  .pixels = pixelsPerColumn});
  });
}

CUresult cuTensorMapEncodeIm2colWide(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
                                     void* globalAddress, const cuuint64_t* globalDim, const cuuint64_t* globalStrides,
                                     int pixelBoxLowerCornerWidth, int pixelBoxUpperCornerWidth,
                                     cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
                                     const cuuint32_t* elementStrides, CUtensorMapInterleave interleave,
                                     CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
                                     CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill) {
  const Tensor tensor{tensorMap,      tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
                      elementStrides, interleave,     swizzle,    l2Promotion,   oobFill};
  return with_context([&](Driver&, Context&) {
    const bool known_mode = between(mode, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128);
    if (!is_tensor(tensor, 3) || !known_mode) return CUDA_ERROR_INVALID_VALUE;
    return encode_pixels(tensor, {.lower = {&pixelBoxLowerCornerWidth, 1},
                                  .upper = {&pixelBoxUpperCornerWidth, 1},
                                  .channels = channelsPerPixel,
                                  // ignored otherwise
                                  .pixels = mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W ? pixelsPerColumn : 1});
  });
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* tensorMap, void* globalAddress) {
  return with_context([&](Driver&, Context&) {
    if (tensorMap == nullptr || globalAddress == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Description d;
    std::memcpy(&d, tensorMap, sizeof d);
    const auto interleave = static_cast<CUtensorMapInterleave>(d.interleave);
    if (!is_aligned(globalAddress, granularity(interleave))) return CUDA_ERROR_INVALID_VALUE;
    d.address = reinterpret_cast<std::uintptr_t>(globalAddress);
    return write(tensorMap, d);
  });
}
