// Maps one texture coordinate of an instruction to texels. Pure functions.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>

namespace simgpu {

inline constexpr std::int32_t no_texel = -1;        // the border
inline constexpr std::uint32_t whole_weight = 256;  // weights are in fixed point with eight bits of fraction

// The texels of a coordinate, and the weight of the second in 256ths. The weight is 0 without linear filtering.
struct Taps {
  std::array<std::int32_t, 2> index{};
  std::uint32_t weight = 0;
};

struct AxisRule {
  CUaddress_mode mode = CU_TR_ADDRESS_MODE_CLAMP;
  bool normalized = false;
  bool linear = false;
  bool open = false;  // indices may exceed the axis by one; the caller resolves them (seamless cubes)
};

// Wrap and mirror need normalised coordinates, else they act as clamp. A NaN coordinate counts as 0.
Taps taps_of(float coordinate, std::uint32_t size, const AxisRule& rule, std::int32_t offset);

// The texel of an integer coordinate, which is not normalised.
std::int32_t texel_of(std::int32_t number, std::uint32_t size, CUaddress_mode mode);

}  // namespace simgpu
