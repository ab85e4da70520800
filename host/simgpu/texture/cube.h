// The faces of a cube map: which one a direction meets and where, and what lies beyond a face's edge. Faces are
// numbered +x, -x, +y, -y, +z, -z, as the layers of a cube's array are. Pure functions.
#pragma once

#include <array>
#include <cstdint>

namespace simgpu {

using Direction = std::array<float, 3>;

// A direction as a face sees it: s and t across it, m towards it. On the face: (s / m + 1) / 2, and t likewise.
struct FaceVector {
  float s = 0;
  float t = 0;
  float m = 0;
};

// The face of the greatest component. Of equal ones z's is taken before y's, and y's before x's.
unsigned face_of(const Direction& direction);
FaceVector seen_from(unsigned face, const Direction& direction);

struct CubeTexel {
  unsigned face = 0;
  std::int32_t x = 0;
  std::int32_t y = 0;
};
// The texel that a step over one edge of a face of `size` texels a side reaches. Precondition: exactly one of x and y
// is -1 or `size`.
CubeTexel beyond_edge(const CubeTexel& texel, std::int32_t size);

}  // namespace simgpu
