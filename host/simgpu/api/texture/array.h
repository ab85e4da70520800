// Arrays and mipmapped arrays of the simulated driver: memory for texels with a geometry.
//
// The texels are an allocation in the device's address space, so an array counts as used memory, and copies outside the
// array are detected. An array, a level, a texture object and a copy in flight share ownership of the texels; the last
// owner frees them.
#pragma once

#include "host/simgpu/api/cuda_api.h"
#include "ring/base/mutex.h"

#include <memory>
#include <vector>

#include "host/simgpu/api/driver.h"
#include "host/simgpu/texture/texture.h"

namespace simgpu {

// The geometry, format and sizes that an array description specifies, in terms of the texture unit.
struct ArrayShape {
  Geometry geometry = Geometry::D2;
  TexelFormat format;
  unsigned texel_bytes = 0;
  std::vector<Level> levels;  // pitches of each level, without its texels; `starts` has each level's offset
  std::vector<std::size_t> starts;
  std::size_t bytes = 0;  // size of all levels together
};

// Computes the shape of a description with at most `levels` levels. Returns an error if the description is invalid.
CUresult shape_of(const Device& device, const CUDA_ARRAY3D_DESCRIPTOR& description, unsigned levels, ArrayShape& out);

// The data that arrays and mipmapped arrays have in common.
struct Texels {
  std::shared_ptr<Context> context;
  CUDA_ARRAY3D_DESCRIPTOR description{};
  Image image;  // `image.keeps` is released when the context ends
};

struct Array : Texels {
  CUarray handle = nullptr;
  bool is_level = false;  // a level of a mipmapped array, which is destroyed with that array
  const Level& level() const { return image.levels.front(); }
};

struct MipmappedArray : Texels {
  CUmipmappedArray handle = nullptr;
  ring::Mutex mutex;
  std::vector<CUarray> levels GUARDED_BY(mutex);  // handles of levels, created at first use
};

// Allocates the texels of a description.
CUresult make_texels(Driver& driver, Context& context, const CUDA_ARRAY3D_DESCRIPTOR& description, unsigned levels,
                     Texels& out);

// Returns the description of a level of the mipmapped array with the given description.
CUDA_ARRAY3D_DESCRIPTOR level_of(const CUDA_ARRAY3D_DESCRIPTOR& description, unsigned level);

// Wraps a call on an array, whose context must have neither failed nor ended. NULL is an error in any state.
template <class F>
CUresult with_array(CUarray handle, F&& call) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return with_context_of(&Driver::arrays, handle, [&](Driver& driver, Context& context) {
    const std::shared_ptr<Array> array = driver.arrays.find(handle);
    return array == nullptr ? CUDA_ERROR_INVALID_HANDLE : call(driver, context, *array);
  });
}

template <class F>
CUresult with_mipmapped_array(CUmipmappedArray handle, F&& call) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return with_context_of(&Driver::mipmapped_arrays, handle, [&](Driver& driver, Context& context) {
    const std::shared_ptr<MipmappedArray> array = driver.mipmapped_arrays.find(handle);
    return array == nullptr ? CUDA_ERROR_INVALID_HANDLE : call(driver, context, array);
  });
}

// Drops the arrays of a context that ends. The handles of a created context's arrays stay known without memory, and
// calls on them report a destroyed context.
void drop_arrays(Driver& driver, const Context& context);

}  // namespace simgpu
