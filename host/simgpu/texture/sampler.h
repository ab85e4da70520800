// Samples textures as "Texture Fetching" of the CUDA C++ Programming Guide describes. Pure functions: equal texels give
// equal results.
//
// Filter weights are fixed-point numbers with 8 fraction bits, rounded to nearest. The weighted sum is exact up to
// float rounding; hardware may lose some bits. The geometry of the instruction determines the meaning of the
// coordinates, and the sizes of the levels determine their limits.
//
// Where the guide leaves the behaviour open, this code follows an H200: tests/contract/texture_in_kernel.cc.
#pragma once

#include <array>
#include <optional>

#include "host/simgpu/texture/texel.h"
#include "host/simgpu/texture/texture.h"

namespace simgpu {

struct SamplePoint {
  Geometry geometry = Geometry::D2;      // geometry of the instruction, never Linear
  std::array<float, 3> at{};             // for a cube: the direction
  std::uint32_t layer = 0;               // clamped to the last layer
  std::array<std::int32_t, 3> offset{};  // in texels; not for cubes
};

// A texel selected by integer coordinates. Outside a level of an array the address mode applies, as for unnormalised
// coordinates. Outside linear memory all channels are 0. One-dimensional fetches support only linear memory and read
// arrays as 0.
struct FetchPoint {
  Geometry geometry = Geometry::D2;  // never a cube
  std::array<std::int32_t, 3> texel{};
  std::uint32_t layer = 0;
};

// The number of readable bytes from the first texel of each level. A texel beyond that number reads as zeros and sets
// `left`.
struct Reach {
  std::uint64_t bytes = 0;
  bool left = false;
};

// sample() adds the sampler's bias to `level` and applies the sampler's limits. Without a level, the limits apply to
// level 0. Without a reach, every texel is readable.
ChannelBits sample(const Texture& texture, const SamplePoint& point, std::optional<float> level,
                   Reach* reach = nullptr);
ChannelBits fetch(const Texture& texture, const FetchPoint& point, std::int32_t level, Reach* reach = nullptr);
// Returns one channel of the four texels that linear filtering would use at level 0, in the order (x, y + 1), (x + 1, y
// + 1), (x + 1, y), (x, y).
ChannelBits gather(const Texture& texture, const SamplePoint& point, unsigned channel, Reach* reach = nullptr);

// Returns the level for gradients: log2 of the longer gradient in texels. Sampling is isotropic.
float level_of_gradient(const Texture& texture, const SamplePoint& point, const std::array<float, 3>& dx,
                        const std::array<float, 3>& dy);

// The two mipmap levels around a fractional level, and the weight of the second in 1/256.
struct LevelTaps {
  std::size_t first = 0;
  std::size_t second = 0;
  std::uint32_t weight = 0;
};
LevelTaps levels_of(const Texture& texture, std::optional<float> level);

}  // namespace simgpu
