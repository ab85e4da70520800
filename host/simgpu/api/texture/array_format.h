// The formats of arrays. Block-compressed formats are recognised but not supported. Like an H200, the simulation
// refuses video formats for textures.
#pragma once

#include "host/simgpu/api/cuda_api.h"

namespace simgpu {

enum class FormatKind { Unknown, Plain, Blocks };

struct FormatInfo {
  FormatKind kind = FormatKind::Unknown;
  unsigned channels = 0;  // number of channels that the format implies; 0: the array description gives the number
};

constexpr FormatInfo info_of(CUarray_format format) {
  switch (static_cast<unsigned>(format)) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_HALF:
    case CU_AD_FORMAT_FLOAT: return {FormatKind::Plain, 0};
    case CU_AD_FORMAT_UNORM_INT8X1:
    case CU_AD_FORMAT_UNORM_INT16X1:
    case CU_AD_FORMAT_SNORM_INT8X1:
    case CU_AD_FORMAT_SNORM_INT16X1: return {FormatKind::Plain, 1};
    case CU_AD_FORMAT_UNORM_INT8X2:
    case CU_AD_FORMAT_UNORM_INT16X2:
    case CU_AD_FORMAT_SNORM_INT8X2:
    case CU_AD_FORMAT_SNORM_INT16X2: return {FormatKind::Plain, 2};
    case CU_AD_FORMAT_UNORM_INT8X4:
    case CU_AD_FORMAT_UNORM_INT16X4:
    case CU_AD_FORMAT_SNORM_INT8X4:
    case CU_AD_FORMAT_SNORM_INT16X4:
    case CU_AD_FORMAT_UNORM_INT_101010_2: return {FormatKind::Plain, 4};
    default: break;
  }
  const bool blocks = format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_BC7_UNORM_SRGB;
  return {blocks ? FormatKind::Blocks : FormatKind::Unknown, 0};
}

// Returns CUDA_SUCCESS if the simulation supports texels of this format and number of channels.
constexpr CUresult check_format(CUarray_format format, unsigned channels) {
  const FormatInfo info = info_of(format);
  if (info.kind == FormatKind::Unknown) return CUDA_ERROR_INVALID_VALUE;
  if (channels != 1 && channels != 2 && channels != 4 && info.kind == FormatKind::Plain)
    return CUDA_ERROR_INVALID_VALUE;
  if (info.kind == FormatKind::Blocks) return CUDA_ERROR_NOT_SUPPORTED;
  return info.channels == 0 || info.channels == channels ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace simgpu
