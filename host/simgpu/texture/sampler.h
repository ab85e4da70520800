// Reads textures by the rules of "Texture Fetching" in the CUDA C++ Programming Guide. Pure functions over memory: the
// same texels give the same answer.
//
// Filtering weights are in fixed point with eight bits of fraction, rounded to nearest; the weighted sum itself is
// exact to a single's rounding, where hardware may lose a few more bits. The texture decides nothing about coordinates:
// an instruction's geometry says what they mean, and the levels' sizes what they may reach.
//
// Where the guide leaves something open, an H200 has answered: tests/contract/texture_in_kernel.cc.
#pragma once

#include <array>
#include <optional>

#include "host/simgpu/texture/texel.h"
#include "host/simgpu/texture/texture.h"

namespace simgpu {

struct SamplePoint {
  Geometry geometry = Geometry::D2;      // of the instruction, never Linear
  std::array<float, 3> at{};             // of a cube: a direction
  std::uint32_t layer = 0;               // held to the last
  std::array<std::int32_t, 3> offset{};  // in texels, not for cubes
};

// A texel by its number. Outside of an array's level the address mode chooses one, as for coordinates that are not
// normalised; outside of linear memory all channels are 0. In one dimension only linear memory has numbered texels: those
// of an array are 0.
struct FetchPoint {
  Geometry geometry = Geometry::D2;  // no cube
  std::array<std::int32_t, 3> texel{};
  std::uint32_t layer = 0;
};

// The bytes from each level's first texel on that may be read. A texel beyond them reads as zeros and sets `left`.
struct Reach {
  std::uint64_t bytes = 0;
  bool left = false;
};

// `level` is the one that the instruction asks for: bias and limits of the sampler are put on it here. An instruction
// that asks for none gets level 0, on which the limits are put alone. Without a reach, each texel may be read.
ChannelBits sample(const Texture& texture, const SamplePoint& point, std::optional<float> level,
                   Reach* reach = nullptr);
ChannelBits fetch(const Texture& texture, const FetchPoint& point, std::int32_t level, Reach* reach = nullptr);
// One channel of the four texels that linear filtering would take, of the first level: those at (x, y + 1),
// (x + 1, y + 1), (x + 1, y) and (x, y).
ChannelBits gather(const Texture& texture, const SamplePoint& point, unsigned channel, Reach* reach = nullptr);

// The level that gradients ask for: the logarithm of the larger one's length in texels. Sampling is isotropic.
float level_of_gradient(const Texture& texture, const SamplePoint& point, const std::array<float, 3>& dx,
                        const std::array<float, 3>& dy);

// The levels that a level between them means, and the weight of the second in 256ths.
struct LevelTaps {
  std::size_t first = 0;
  std::size_t second = 0;
  std::uint32_t weight = 0;
};
LevelTaps levels_of(const Texture& texture, std::optional<float> level);

}  // namespace simgpu
