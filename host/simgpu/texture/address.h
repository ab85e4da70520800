// Maps one texture coordinate of an instruction to texels. Pure functions.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>

namespace simgpu {

inline constexpr std::int32_t no_texel = -1;        // index that stands for the border
inline constexpr std::uint32_t whole_weight = 256;  // weights are fixed-point numbers with eight fraction bits

// The two texels that a coordinate selects, and the weight of the second in 1/256. Without linear filtering the weight
// is 0.
struct Taps {
  std::array<std::int32_t, 2> index{};
  std::uint32_t weight = 0;
};

struct AxisRule {
  CUaddress_mode mode = CU_TR_ADDRESS_MODE_CLAMP;
  bool normalized = false;
  bool linear = false;
  bool open = false;  // indices may exceed the axis by one; the caller resolves these (seamless cubes)
};

// Wrap and mirror modes require normalised coordinates; otherwise they act as clamp. A NaN coordinate counts as 0.
Taps taps_of(float coordinate, std::uint32_t size, const AxisRule& rule, std::int32_t offset);

// Returns the texel for an integer coordinate, which is not normalised.
std::int32_t texel_of(std::int32_t number, std::uint32_t size, CUaddress_mode mode);

}  // namespace simgpu
