// Faces of a cube map: the face and position that a direction hits, and the texels beyond a face's edge. Faces are
// numbered +x, -x, +y, -y, +z, -z, like a cube array's layers. Pure functions.
#pragma once

#include <array>
#include <cstdint>

namespace simgpu {

using Direction = std::array<float, 3>;

// A direction in a face's frame: s and t in the face, m towards it. Position: (s / m + 1) / 2, same for t.
struct FaceVector {
  float s = 0;
  float t = 0;
  float m = 0;
};

// The face of the largest component. z wins ties, then y.
unsigned face_of(const Direction& direction);
FaceVector seen_from(unsigned face, const Direction& direction);

struct CubeTexel {
  unsigned face = 0;
  std::int32_t x = 0;
  std::int32_t y = 0;
};
// The texel reached by a step over one edge of a face with `size` texels per side. Precondition: exactly one of x and y
// is -1 or `size`.
CubeTexel beyond_edge(const CubeTexel& texel, std::int32_t size);

}  // namespace simgpu
