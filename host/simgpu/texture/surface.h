// Where a surface instruction reads or writes. Pure functions.
#pragma once

#include <array>

#include "host/simgpu/texture/texture.h"

namespace simgpu {

enum class Bounds : std::uint8_t { Trap, Clamp, Zero };  // what an access outside of the surface does

struct SurfacePoint {
  Geometry geometry = Geometry::D2;  // of the instruction, no cube: faces are layers
  std::array<std::int32_t, 3> at{};  // the first in bytes, or in texels of a formatted access
  std::uint32_t layer = 0;
  bool formatted = false;
};

struct SurfacePlace {
  enum class Kind : std::uint8_t { Inside, Nothing, Trapped, Misaligned };
  Kind kind = Kind::Trapped;
  std::byte* memory = nullptr;  // Inside
};

// Of an access of `bytes` bytes, a power of two; a formatted access has a texel's.
SurfacePlace surface_place(const Surface& surface, const SurfacePoint& point, unsigned bytes, Bounds bounds);

}  // namespace simgpu
