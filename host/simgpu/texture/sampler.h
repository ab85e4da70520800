// Samples textures by "Texture Fetching" of the CUDA C++ Programming Guide. Pure functions: equal texels give equal
// results.
//
// Filter weights are fixed-point with 8 fraction bits, rounded to nearest. The weighted sum is exact to float rounding;
// hardware may lose some bits. The instruction's geometry determines the coordinates' meaning, and the levels' sizes
// their limits.
//
// Where the guide leaves behaviour open, this follows an H200: tests/contract/texture_in_kernel.cc.
#pragma once

#include <array>
#include <optional>

#include "host/simgpu/texture/texel.h"
#include "host/simgpu/texture/texture.h"

namespace simgpu {

struct SamplePoint {
  Geometry geometry = Geometry::D2;      // of the instruction, never Linear
  std::array<float, 3> at{};             // of a cube: the direction
  std::uint32_t layer = 0;               // clamped to the last layer
  std::array<std::int32_t, 3> offset{};  // in texels, not for cubes
};

// A texel by integer coordinates. Outside an array's level the address mode applies, as for unnormalised coordinates;
// outside linear memory all channels are 0. In one dimension only linear memory is supported; arrays read as 0.
struct FetchPoint {
  Geometry geometry = Geometry::D2;  // no cube
  std::array<std::int32_t, 3> texel{};
  std::uint32_t layer = 0;
};

// The readable bytes from each level's first texel. A texel beyond them reads as zeros and sets `left`.
struct Reach {
  std::uint64_t bytes = 0;
  bool left = false;
};

// Applies the sampler's bias and limits to the instruction's `level`. Without a level, applies the limits to level 0.
// Without a reach, each texel is readable.
ChannelBits sample(const Texture& texture, const SamplePoint& point, std::optional<float> level,
                   Reach* reach = nullptr);
ChannelBits fetch(const Texture& texture, const FetchPoint& point, std::int32_t level, Reach* reach = nullptr);
// One channel of the four texels of linear filtering, at level 0: (x, y + 1), (x + 1, y + 1), (x + 1, y), (x, y).
ChannelBits gather(const Texture& texture, const SamplePoint& point, unsigned channel, Reach* reach = nullptr);

// The level for gradients: log2 of the longer one in texels. Sampling is isotropic.
float level_of_gradient(const Texture& texture, const SamplePoint& point, const std::array<float, 3>& dx,
                        const std::array<float, 3>& dy);

// The two mipmap levels around a fractional level, and the second's weight in 256ths.
struct LevelTaps {
  std::size_t first = 0;
  std::size_t second = 0;
  std::uint32_t weight = 0;
};
LevelTaps levels_of(const Texture& texture, std::optional<float> level);

}  // namespace simgpu
