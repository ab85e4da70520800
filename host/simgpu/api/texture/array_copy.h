// Arrays as sides of copies: rows and slices of bytes. A copy may begin and end within a texel.
#pragma once

#include "host/simgpu/api/cuda_api.h"

#include <cstddef>
#include <memory>

#include "host/simgpu/api/memory/rows.h"

namespace simgpu {

// The offset in an array at which a copy begins: bytes, rows, and slices or layers.
struct ArrayOffset {
  std::size_t x = 0, y = 0, z = 0;
};

// Computes the layout of the shape in the array; `keeps` then owns the texels. Returns an error if the shape does not
// fit.
CUresult place_in_array(Driver& driver, CUarray handle, const ArrayOffset& offset, const Shape& shape, Layout& layout,
                        std::shared_ptr<void>& keeps);

}  // namespace simgpu
