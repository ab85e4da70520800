// Tests cube maps: the selection of a face and of the position in it, and filtering across edges of faces.
#include "host/simgpu/texture/cube.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "host/simgpu/texture/sampler.h"
#include "tests/search_options.h"
#include "tests/unit/simgpu/texture_fixture.h"

namespace simgpu {
namespace {

// These are the rows of the table in the CUDA C++ Programming Guide.
TEST(Cube, FacesAndTheirAxes) {
  struct Case {
    Direction direction;
    unsigned face;
    float s, t, m;
  };
  const Case cases[] = {{{4, 1, 2}, 0, -2, -1, 4}, {{-4, 1, 2}, 1, 2, -1, 4}, {{1, 4, 2}, 2, 1, 2, 4},
                        {{1, -4, 2}, 3, 1, -2, 4}, {{1, 2, 4}, 4, 1, -2, 4},  {{1, 2, -4}, 5, -1, -2, 4}};
  for (const Case& one : cases) {
    ASSERT_EQ(face_of(one.direction), one.face);
    const FaceVector seen = seen_from(one.face, one.direction);
    EXPECT_EQ(seen.s, one.s) << one.face;
    EXPECT_EQ(seen.t, one.t) << one.face;
    EXPECT_EQ(seen.m, one.m) << one.face;
  }
}

TEST(Cube, OfEqualComponentsZComesFirst) {
  EXPECT_EQ(face_of({1, 1, 1}), 4u);
  EXPECT_EQ(face_of({1, 1, -1}), 5u);
  EXPECT_EQ(face_of({1, -1, 0}), 3u);
  EXPECT_EQ(face_of({-1, 0, 0}), 1u);
}

// A step over an edge leads to another face, to a texel at the edge. A step back over the same edge leads to the
// original texel.
TEST(Cube, StepsOverEdgesLeadBack) {
  for (const std::int32_t size : {1, 2, 3, 8, 64}) {
    for (unsigned face = 0; face < 6; ++face) {
      for (std::int32_t along = 0; along < size; ++along) {
        for (const auto& [x, y, dx, dy] :
             {std::array{0, along, -1, 0}, {size - 1, along, 1, 0}, {along, 0, 0, -1}, {along, size - 1, 0, 1}}) {
          const CubeTexel there = beyond_edge({face, x + dx, y + dy}, size);
          ASSERT_NE(there.face, face);
          ASSERT_NE(there.face / 2, face / 2) << "the opposite face is no neighbour";
          unsigned back = 0;
          for (const auto& [bx, by] : {std::pair{-1, 0}, {1, 0}, {0, -1}, {0, 1}}) {
            const std::int32_t tx = there.x + bx, ty = there.y + by;
            if ((tx < 0 || tx >= size) == (ty < 0 || ty >= size)) continue;
            const CubeTexel home = beyond_edge({there.face, tx, ty}, size);
            back += home.face == face && home.x == x && home.y == y;
          }
          EXPECT_EQ(back, 1u) << size << ": " << face << " " << x << "," << y;
        }
      }
    }
  }
}

constexpr std::uint32_t side = 16;

// A smooth function of the direction: a weighted sum of the components of the unit vector.
float worth(const Direction& d) { return (d[0] + 2 * d[1] + 3 * d[2]) / std::hypot(d[0], d[1], d[2]); }

Direction texel_direction(unsigned face, std::uint32_t x, std::uint32_t y) {
  const float s = (2 * static_cast<float>(x) + 1) / side - 1, t = (2 * static_cast<float>(y) + 1) / side - 1;
  switch (face) {
    case 0: return {1, -t, -s};
    case 1: return {-1, -t, s};
    case 2: return {s, 1, t};
    case 3: return {s, -1, -t};
    case 4: return {s, -t, 1};
    default: return {-s, -t, -1};
  }
}

Texture smooth_cube(bool seamless, CUfilter_mode filter) {
  std::vector<float> texels;
  for (unsigned face = 0; face < 6; ++face) {
    for (std::uint32_t k = 0; k < side * side; ++k) texels.push_back(worth(texel_direction(face, k % side, k / side)));
  }
  Texture texture = texture_of(floats_of(Geometry::Cube, {side, side, 6}, texels), filter, true);
  texture.sampler.seamless_cube = seamless;
  return texture;
}

float look(const Texture& texture, const Direction& direction) {
  return as_float(sample(texture, {Geometry::Cube, direction, 0, {}}, 0)[0]);
}

TEST(Cube, EveryTexelIsFoundInItsDirection) {
  const Texture texture = smooth_cube(false, CU_TR_FILTER_MODE_POINT);
  for (unsigned face = 0; face < 6; ++face) {
    for (std::uint32_t k = 0; k < side * side; ++k) {
      const Direction direction = texel_direction(face, k % side, k / side);
      EXPECT_EQ(look(texture, direction), worth(direction)) << face << " " << k;
    }
  }
}

// A step of one texel changes the function by at most about sqrt(14) / 8. Interpolation must be far more precise than
// half of that, also across edges.
TEST(Cube, SeamlessFilteringFollowsASmoothField) {
  const Texture texture = smooth_cube(true, CU_TR_FILTER_MODE_LINEAR);
  std::mt19937 random(test_seed(2));
  std::normal_distribution<float> any;
  for (int k = 0; k < 5000; ++k) {
    const Direction direction{any(random), any(random), any(random)};
    EXPECT_NEAR(look(texture, direction), worth(direction), 0.06F);
  }
}

// Directions on both sides of an edge must have nearly equal results.
TEST(Cube, SeamlessFilteringHasNoSeam) {
  const Texture seamless = smooth_cube(true, CU_TR_FILTER_MODE_LINEAR);
  const Texture clamped = smooth_cube(false, CU_TR_FILTER_MODE_LINEAR);
  constexpr float near = 1e-4F;
  float widest = 0;
  for (int k = -9; k <= 9; ++k) {
    const float along = static_cast<float>(k) / 10;
    const std::pair<Direction, Direction> sides[] = {{{1 + near, along, 1}, {1, along, 1 + near}},
                                                     {{along, 1 + near, -1}, {along, 1, -1 - near}},
                                                     {{-1 - near, -1, along}, {-1, -1 - near, along}}};
    for (const auto& [one, other] : sides) {
      EXPECT_NEAR(look(seamless, one), look(seamless, other), 0.01F) << along;
      widest = std::max(widest, std::fabs(look(clamped, one) - look(clamped, other)));
    }
  }
  EXPECT_GT(widest, 0.05F) << "the test would not see a seam";
}

TEST(Cube, ACornerIsThatOfThreeFaces) {
  std::vector<float> texels(6);
  for (unsigned face = 0; face < 6; ++face) texels[face] = static_cast<float>(1 << face);
  Texture texture = texture_of(floats_of(Geometry::Cube, {1, 1, 6}, texels), CU_TR_FILTER_MODE_LINEAR, true);
  texture.sampler.seamless_cube = true;
  // Faces +x, +y, +z hold 1, 4 and 16. Each face has a weight of one quarter. The fourth quarter is divided among the
  // three faces in steps of 1/256, and the remaining step goes to the face that the direction hits. An H200 gave these
  // results.
  EXPECT_EQ(look(texture, {1, 1, 1}), (85 * 1 + 85 * 4 + 86 * 16) / 256.0F);
  EXPECT_EQ(look(texture, {-1, -1, -1}), (85 * 2 + 85 * 8 + 86 * 32) / 256.0F);
}

TEST(Cube, SeamlessEdgesHaveNoAddressMode) {
  for (const CUaddress_mode mode : {CU_TR_ADDRESS_MODE_WRAP, CU_TR_ADDRESS_MODE_CLAMP}) {
    Texture texture =
        texture_of(floats_of(Geometry::Cube, {1, 1, 6}, {1, 2, 4, 8, 16, 32}), CU_TR_FILTER_MODE_LINEAR, true, mode);
    texture.sampler.seamless_cube = true;
    EXPECT_EQ(look(texture, {1, 0, 1}), 8.5F) << mode;
  }
}

TEST(Cube, LayersHaveSixFacesEach) {
  std::vector<float> texels(18);
  for (unsigned k = 0; k < 18; ++k) texels[k] = static_cast<float>(k);
  const Texture texture =
      texture_of(floats_of(Geometry::CubeLayered, {1, 1, 18}, texels), CU_TR_FILTER_MODE_POINT, true);
  const auto value = [&](const Direction& direction, std::uint32_t layer) {
    return as_float(sample(texture, {Geometry::CubeLayered, direction, layer, {}}, 0)[0]);
  };
  EXPECT_EQ(value({1, 0, 0}, 0), 0);
  EXPECT_EQ(value({0, -1, 0}, 1), 9);
  EXPECT_EQ(value({0, 0, -1}, 2), 17);
  EXPECT_EQ(value({0, 0, -1}, 3), 17);
  EXPECT_EQ(value({0, 0, 0}, ~0U), 16);
}

}  // namespace
}  // namespace simgpu
