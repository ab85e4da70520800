// Helpers that cases for arrays, textures and surfaces share.
#pragma once

#include <array>
#include <numeric>

#include "tests/contract/suite.h"

namespace contract {

inline CUDA_ARRAY3D_DESCRIPTOR described(std::size_t width, std::size_t height = 0, std::size_t depth = 0,
                                         unsigned flags = 0, CUarray_format format = CU_AD_FORMAT_UNSIGNED_INT32,
                                         unsigned channels = 1) {
  return {.Width = width, .Height = height, .Depth = depth, .Format = format, .NumChannels = channels, .Flags = flags};
}

inline CUarray make_array(const CUDA_ARRAY3D_DESCRIPTOR& description) {
  CUarray array = nullptr;
  CU(cuArray3DCreate_v2)(&array, &description);
  return array;
}

inline CUmipmappedArray make_mipmapped(const CUDA_ARRAY3D_DESCRIPTOR& description, unsigned levels) {
  CUmipmappedArray array = nullptr;
  CU(cuMipmappedArrayCreate)(&array, &description, levels);
  return array;
}

template <class T>
T zeroed() {
  T value;
  std::memset(&value, 0, sizeof value);
  return value;
}

inline CUDA_RESOURCE_DESC resource_of(CUarray array) {
  auto resource = zeroed<CUDA_RESOURCE_DESC>();
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  return resource;
}

inline CUDA_RESOURCE_DESC resource_of(CUmipmappedArray array) {
  auto resource = zeroed<CUDA_RESOURCE_DESC>();
  resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  resource.res.mipmap.hMipmappedArray = array;
  return resource;
}

// Returns bytes that differ between neighbours, rows and slices.
template <std::size_t bytes>
std::array<unsigned char, bytes> pattern() {
  std::array<unsigned char, bytes> out;
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<unsigned char>(i * 7 + i / 64 + i / 1024 + 1);
  return out;
}

}  // namespace contract
