// Arrays and mipmapped arrays of the simulated driver: memory of texels with a geometry.
//
// The texels are an allocation of the device's space, so an array counts as memory and a copy that goes astray is found.
// What uses the texels (an array, a level, a texture object, a copy in flight) shares them, and the last one frees them.
#pragma once

#include "host/simgpu/api/cuda_api.h"

#include <memory>
#include <vector>

#include "host/simgpu/api/driver.h"
#include "host/simgpu/texture/texture.h"

namespace simgpu {

// What a description says, in the words of textures.
struct ArrayShape {
  Geometry geometry = Geometry::D2;
  TexelFormat format;
  unsigned texel_bytes = 0;
  std::vector<Level> levels;  // without texels: each level's pitches, and its place in `starts`
  std::vector<std::size_t> starts;
  std::size_t bytes = 0;  // of all levels
};

// The shape of a description with at most `levels` levels. CUDA_SUCCESS, or what is wrong with it.
CUresult shape_of(const Device& device, const CUDA_ARRAY3D_DESCRIPTOR& description, unsigned levels, ArrayShape& out);

// What is common to both kinds.
struct Texels {
  std::shared_ptr<Context> context;
  CUDA_ARRAY3D_DESCRIPTOR description{};
  Image image;  // `image.keeps` goes when the context ends
};

struct Array : Texels {
  CUarray handle = nullptr;
  bool is_level = false;  // of a mipmapped array, with which it goes
  const Level& level() const { return image.levels.front(); }
};

struct MipmappedArray : Texels {
  CUmipmappedArray handle = nullptr;
  std::mutex mutex;
  std::vector<CUarray> levels;  // handles of levels, made when first asked for; under mutex
};

// Makes the texels for a description.
CUresult make_texels(Driver& driver, Context& context, const CUDA_ARRAY3D_DESCRIPTOR& description, unsigned levels,
                     Texels& out);

// A level's description, by that of its mipmapped array.
CUDA_ARRAY3D_DESCRIPTOR level_of(const CUDA_ARRAY3D_DESCRIPTOR& description, unsigned level);

// A call that takes an array, whose context must be in working order. No array is a mistake in any state.
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

// The arrays of a context that ends. Those of a created one stay known as such of a destroyed context, without memory.
void drop_arrays(Driver& driver, const Context& context);

}  // namespace simgpu
