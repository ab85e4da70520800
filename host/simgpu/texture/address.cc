// Implements the rules of "Texture Fetching" in the CUDA C++ Programming Guide.
#include "host/simgpu/texture/address.h"

#include <algorithm>
#include <cmath>

namespace simgpu {
namespace {

// Coordinates are clamped to this number of texels on both sides, which is outside of every texture.
constexpr double far = 1 << 24;

CUaddress_mode effective(const AxisRule& rule) {
  const bool periodic = rule.mode == CU_TR_ADDRESS_MODE_WRAP || rule.mode == CU_TR_ADDRESS_MODE_MIRROR;
  return periodic && !rule.normalized ? CU_TR_ADDRESS_MODE_CLAMP : rule.mode;
}

std::int64_t remainder(std::int64_t value, std::int64_t period) {
  const std::int64_t rest = value % period;
  return rest < 0 ? rest + period : rest;
}

std::int32_t index_in(std::int64_t index, std::int64_t size, CUaddress_mode mode) {
  switch (mode) {
    case CU_TR_ADDRESS_MODE_WRAP: return static_cast<std::int32_t>(remainder(index, size));
    case CU_TR_ADDRESS_MODE_MIRROR: {
      const std::int64_t place = remainder(index, 2 * size);
      return static_cast<std::int32_t>(place < size ? place : 2 * size - 1 - place);
    }
    case CU_TR_ADDRESS_MODE_BORDER: return index < 0 || index >= size ? no_texel : static_cast<std::int32_t>(index);
    default: return static_cast<std::int32_t>(std::clamp<std::int64_t>(index, 0, size - 1));
  }
}

// Scales a coordinate to texels. A periodic coordinate is first reduced to its first period, so that scaling loses no
// bits.
double scaled(float coordinate, double size, bool normalized, CUaddress_mode mode) {
  double place = coordinate;
  if (std::isnan(place)) return 0;
  if (mode == CU_TR_ADDRESS_MODE_WRAP || mode == CU_TR_ADDRESS_MODE_MIRROR) {
    const double period = mode == CU_TR_ADDRESS_MODE_WRAP ? 1 : 2;
    place = std::isinf(place) ? 0 : place - period * std::floor(place / period);
  }
  if (normalized) place *= size;
  return std::clamp(place, -far, size + far);
}

}  // namespace

Taps taps_of(float coordinate, std::uint32_t size, const AxisRule& rule, std::int32_t offset) {
  const CUaddress_mode mode = effective(rule);
  const double place = scaled(coordinate, size, rule.normalized, mode);
  const auto held = [&](std::int64_t index) {
    if (!rule.open) return index_in(index, size, mode);
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(index, -1, size));
  };
  if (!rule.linear) {
    const auto index = static_cast<std::int64_t>(std::floor(place)) + offset;
    return {{held(index), held(index)}, 0};
  }
  // The centre of texel i has the coordinate i + 1/2.
  const auto fixed = static_cast<std::int64_t>(std::floor((place - 0.5) * whole_weight + 0.5));
  const std::int64_t first = (fixed >> 8) + offset;
  return {{held(first), held(first + 1)}, static_cast<std::uint32_t>(fixed & 255)};
}

std::int32_t texel_of(std::int32_t number, std::uint32_t size, CUaddress_mode mode) {
  return index_in(number, size, effective({mode, false, false, false}));
}

}  // namespace simgpu
