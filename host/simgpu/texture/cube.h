// Faces of a cube map: computes the face and position that a direction hits, and the texels beyond the edge of a face.
// The faces have the order +x, -x, +y, -y, +z, -z, like the layers of a cube array. Pure functions.
#pragma once

#include <array>
#include <cstdint>

namespace simgpu {

using Direction = std::array<float, 3>;

// A direction in the coordinates of a face: s and t lie in the face, m points towards it. The position in the face is
// (s / m + 1) / 2, and (t / m + 1) / 2.
struct FaceVector {
  float s = 0;
  float t = 0;
  float m = 0;
};

// Returns the face of the component with the largest magnitude. z wins ties, then y.
unsigned face_of(const Direction& direction);
FaceVector seen_from(unsigned face, const Direction& direction);

struct CubeTexel {
  unsigned face = 0;
  std::int32_t x = 0;
  std::int32_t y = 0;
};
// Returns the texel beyond one edge of a face that has `size` texels per side. Precondition: exactly one of x and y is
// -1 or `size`.
CubeTexel beyond_edge(const CubeTexel& texel, std::int32_t size);

}  // namespace simgpu
