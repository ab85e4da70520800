// A fixture for tests of textures: images whose texels a test gives by value.
#pragma once

#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "host/simgpu/texture/texture.h"

namespace simgpu {

struct Size {
  std::uint32_t width = 1, height = 1, depth = 1;
};

// Rows and slices have padding of 0xee, so that a read past a row is detected.
template <class T>
Image image_of(Geometry geometry, TexelFormat format, Size size, const std::vector<T>& channels) {
  constexpr std::size_t spare = 16;
  const std::size_t texel = texel_bytes(format);
  const std::size_t row = size.width * texel + spare;
  const std::size_t slice = row * size.height + spare;
  auto memory = std::make_shared<std::vector<std::byte>>(slice * size.depth, std::byte{0xee});
  const auto* from = reinterpret_cast<const std::byte*>(channels.data());
  for (std::size_t z = 0; z < size.depth; ++z) {
    for (std::size_t y = 0; y < size.height; ++y, from += size.width * texel) {
      std::memcpy(memory->data() + z * slice + y * row, from, size.width * texel);
    }
  }
  Image image;
  image.geometry = geometry;
  image.format = format;
  image.levels = {{memory->data(), size.width, size.height, size.depth, row, slice}};
  image.keeps = memory;
  return image;
}

inline constexpr TexelFormat one_float{CU_AD_FORMAT_FLOAT, 1};

inline Image floats_of(Geometry geometry, Size size, const std::vector<float>& texels) {
  return image_of(geometry, one_float, size, texels);
}

// Adds a further level of the same format.
inline void add_level(Image& image, const Image& level) {
  image.levels.push_back(level.levels.front());
  image.keeps = std::make_shared<std::vector<std::shared_ptr<void>>>(
      std::vector<std::shared_ptr<void>>{image.keeps, level.keeps});
}

inline Texture texture_of(Image image, CUfilter_mode filter = CU_TR_FILTER_MODE_POINT, bool normalized = false,
                          CUaddress_mode mode = CU_TR_ADDRESS_MODE_CLAMP) {
  Texture texture;
  texture.image = std::move(image);
  texture.sampler.filter = filter;
  texture.sampler.normalized = normalized;
  for (CUaddress_mode& each : texture.sampler.address) each = mode;
  return texture;
}

inline float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

}  // namespace simgpu
