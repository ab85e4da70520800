// A texture reference: what a program has set. No kernel reads it (texture_reference.cc says why).
#pragma once

#include "host/simgpu/api/cuda_api.h"

#include <memory>
#include <mutex>

#include "host/simgpu/api/objects.h"
#include "host/simgpu/texture/texture.h"

namespace simgpu {

struct TextureReference {
  // One of them, or none.
  struct Bound {
    CUarray array = nullptr;
    CUmipmappedArray mipmapped_array = nullptr;
    CUdeviceptr address = 0;
  };

  std::shared_ptr<Context> context;
  CUtexref handle = nullptr;
  std::mutex mutex;  // for the members below
  Bound bound;
  TexelFormat format{.format = CU_AD_FORMAT_FLOAT, .channels = 1};
  CUaddress_mode address_mode[3] = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP};
  CUfilter_mode filter_mode = CU_TR_FILTER_MODE_POINT, mipmap_filter_mode = CU_TR_FILTER_MODE_POINT;
  float level_bias = 0, min_level = 0, max_level = 0;
  unsigned max_anisotropy = 1;
  float border[4] = {};
  unsigned flags = 0;

  void bind(const Bound& what, TexelFormat of) {
    bound = what;
    format = of;
  }
};

}  // namespace simgpu
