// Computes the memory location that a surface instruction accesses. Pure functions.
#pragma once

#include <array>

#include "host/simgpu/texture/texture.h"

namespace simgpu {

enum class Bounds : std::uint8_t { Trap, Clamp, Zero };  // effect of an access outside the surface

struct SurfacePoint {
  Geometry geometry = Geometry::D2;  // geometry of the instruction, never a cube: cube faces are layers
  std::array<std::int32_t, 3> at{};  // x is in bytes, or in texels for a formatted access
  std::uint32_t layer = 0;
  bool formatted = false;
};

struct SurfacePlace {
  enum class Kind : std::uint8_t { Inside, Nothing, Trapped, Misaligned };
  Kind kind = Kind::Trapped;
  std::byte* memory = nullptr;  // set only for kind Inside
};

// `bytes` is the size of the access, a power of two; for a formatted access, the size of a texel.
SurfacePlace surface_place(const Surface& surface, const SurfacePoint& point, unsigned bytes, Bounds bounds);

}  // namespace simgpu
