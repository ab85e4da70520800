// One coordinate of a texture: from what an instruction says to the texels that it means. Pure functions.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>

namespace simgpu {

inline constexpr std::int32_t no_texel = -1;        // the border
inline constexpr std::uint32_t whole_weight = 256;  // weights are in fixed point with eight bits of fraction

// The texels that one coordinate means, and the weight of the second in 256ths. Without linear filtering the weight is
// 0.
struct Taps {
  std::array<std::int32_t, 2> index{};
  std::uint32_t weight = 0;
};

struct AxisRule {
  CUaddress_mode mode = CU_TR_ADDRESS_MODE_CLAMP;
  bool normalized = false;
  bool linear = false;
  bool open = false;  // indices may leave the axis by one: the caller knows what lies there (seamless cubes)
};

// Wrap and mirror hold for normalised coordinates only; otherwise they are clamp. A coordinate that is no number is 0.
Taps taps_of(float coordinate, std::uint32_t size, const AxisRule& rule, std::int32_t offset);

// The texel that a number means, which is a coordinate that is not normalised.
std::int32_t texel_of(std::int32_t number, std::uint32_t size, CUaddress_mode mode);

}  // namespace simgpu
