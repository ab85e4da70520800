// Computes the memory that a surface instruction accesses. Pure functions.
#pragma once

#include <array>

#include "host/simgpu/texture/texture.h"

namespace simgpu {

enum class Bounds : std::uint8_t { Trap, Clamp, Zero };  // behaviour outside the surface

struct SurfacePoint {
  Geometry geometry = Geometry::D2;  // of the instruction, no cube: faces are layers
  std::array<std::int32_t, 3> at{};  // x in bytes, or in texels for a formatted access
  std::uint32_t layer = 0;
  bool formatted = false;
};

struct SurfacePlace {
  enum class Kind : std::uint8_t { Inside, Nothing, Trapped, Misaligned };
  Kind kind = Kind::Trapped;
  std::byte* memory = nullptr;  // Inside
};

// `bytes` is the access size, a power of two; a texel's size for a formatted access.
SurfacePlace surface_place(const Surface& surface, const SurfacePoint& point, unsigned bytes, Bounds bounds);

}  // namespace simgpu
