// A copy's side that is an array: rows and slices of bytes. A copy may begin and end within a texel.
#pragma once

#include "host/simgpu/api/cuda_api.h"

#include <cstddef>
#include <memory>

#include "host/simgpu/api/memory/rows.h"

namespace simgpu {

// Where a copy begins in an array: bytes, rows, slices or layers.
struct ArrayOffset {
  std::size_t x = 0, y = 0, z = 0;
};

// Places the shape in the array, whose texels `keeps` keeps. CUDA_SUCCESS, or what is wrong with it.
CUresult place_in_array(Driver& driver, CUarray handle, const ArrayOffset& offset, const Shape& shape, Layout& layout,
                        std::shared_ptr<void>& keeps);

}  // namespace simgpu
