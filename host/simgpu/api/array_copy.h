// A copy's side that is an array: rows and slices of texels.
#pragma once

#include "host/simgpu/api/cuda_api.h"

#include <cstddef>
#include <memory>

#include "host/simgpu/api/rows.h"

namespace simgpu {

struct ArraySide {
  unsigned texel_bytes = 0;  // 0: the side is no array
  std::shared_ptr<void> keeps;
};

// Where a copy begins in an array: bytes, rows, slices or layers.
struct ArrayOffset {
  std::size_t x = 0, y = 0, z = 0;
};

// Places the shape in the array. CUDA_SUCCESS, or what is wrong with it.
CUresult place_in_array(Driver& driver, CUarray handle, const ArrayOffset& offset, const Shape& shape, Layout& layout,
                        ArraySide& side);

// Between two arrays only texels of the same size can be copied.
inline bool same_texels(const ArraySide& a, const ArraySide& b) {
  return a.texel_bytes == 0 || b.texel_bytes == 0 || a.texel_bytes == b.texel_bytes;
}

}  // namespace simgpu
