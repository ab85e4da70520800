#include "host/simgpu/texture/cube.h"

#include <algorithm>
#include <cmath>

namespace simgpu {
namespace {

// The axis and the sign of s, t and m for each face, from the table of cube maps in the CUDA C++ Programming Guide.
struct Axis {
  unsigned axis;
  float sign;
};
struct Face {
  Axis s, t, m;
};
constexpr Face faces[6] = {
    {{2, -1}, {1, -1}, {0, 1}}, {{2, 1}, {1, -1}, {0, -1}}, {{0, 1}, {2, 1}, {1, 1}},
    {{0, 1}, {2, -1}, {1, -1}}, {{0, 1}, {1, -1}, {2, 1}},  {{0, -1}, {1, -1}, {2, -1}},
};

float along(const Axis& axis, const Direction& direction) { return axis.sign * direction[axis.axis]; }

Direction direction_of(unsigned face, const FaceVector& vector) {
  Direction direction{};
  direction[faces[face].s.axis] = faces[face].s.sign * vector.s;
  direction[faces[face].t.axis] = faces[face].t.sign * vector.t;
  direction[faces[face].m.axis] = faces[face].m.sign * vector.m;
  return direction;
}

// Returns the coordinate of a texel's centre, which is between -1 and 1 within the face.
float centre(std::int32_t index, std::int32_t size) {
  return static_cast<float>(2 * index + 1 - size) / static_cast<float>(size);
}

std::int32_t index_of(float across, std::int32_t size) {
  const float place = std::floor((across + 1) / 2 * static_cast<float>(size));
  return std::clamp(static_cast<std::int32_t>(place), 0, size - 1);
}

}  // namespace

unsigned face_of(const Direction& direction) {
  const float x = std::fabs(direction[0]), y = std::fabs(direction[1]), z = std::fabs(direction[2]);
  const unsigned axis = z >= x && z >= y ? 2 : y >= x ? 1 : 0;
  return 2 * axis + (direction[axis] < 0 ? 1 : 0);
}

FaceVector seen_from(unsigned face, const Direction& direction) {
  return {along(faces[face].s, direction), along(faces[face].t, direction), along(faces[face].m, direction)};
}

// A texel position beyond the edge is projected from the centre of the cube onto the neighbouring face. The projection
// moves the position by less than half a texel, so the result is the texel that touches the edge there.
CubeTexel beyond_edge(const CubeTexel& texel, std::int32_t size) {
  const Direction direction = direction_of(texel.face, {centre(texel.x, size), centre(texel.y, size), 1});
  // face_of() is not used here: the direction may lie on the edge of a third face, for example at size 1.
  const bool over_x = texel.x < 0 || texel.x >= size;
  const unsigned axis = over_x ? faces[texel.face].s.axis : faces[texel.face].t.axis;
  const unsigned face = 2 * axis + (direction[axis] < 0 ? 1 : 0);
  const FaceVector seen = seen_from(face, direction);
  return {face, index_of(seen.s / seen.m, size), index_of(seen.t / seen.m, size)};
}

}  // namespace simgpu
