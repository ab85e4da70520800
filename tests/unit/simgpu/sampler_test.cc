// Tests the rules of texture reads against precomputed values and the test's own formulas. If a formula is not exact,
// the test states its error bound.
#include "host/simgpu/texture/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>
#include <tuple>

#include "tests/search_options.h"
#include "tests/unit/simgpu/texture_fixture.h"

namespace simgpu {
namespace {

constexpr CUfilter_mode point_mode = CU_TR_FILTER_MODE_POINT;
constexpr CUfilter_mode linear_mode = CU_TR_FILTER_MODE_LINEAR;
constexpr CUaddress_mode wrap = CU_TR_ADDRESS_MODE_WRAP;
constexpr CUaddress_mode clamp = CU_TR_ADDRESS_MODE_CLAMP;
constexpr CUaddress_mode mirror = CU_TR_ADDRESS_MODE_MIRROR;
constexpr CUaddress_mode border = CU_TR_ADDRESS_MODE_BORDER;

float at(const Texture& texture, Geometry geometry, float x, float y = 0, float z = 0, std::uint32_t layer = 0,
         float level = 0) {
  return as_float(sample(texture, {geometry, {x, y, z}, layer, {}}, level)[0]);
}

Texture row(const std::vector<float>& texels, CUfilter_mode filter, bool normalized, CUaddress_mode mode) {
  const auto width = static_cast<std::uint32_t>(texels.size());
  return texture_of(floats_of(Geometry::D1, {width}, texels), filter, normalized, mode);
}

TEST(Sampler, PointsTakeTheTexelTheyLieIn) {
  const Texture texture = row({10, 20, 40, 80}, point_mode, false, clamp);
  const std::pair<float, float> wanted[] = {{0, 10},     {0.999F, 10},  {1, 20},      {3.5F, 80},     {4, 80},
                                            {1e30F, 80}, {-0.001F, 10}, {-1e30F, 10}, {INFINITY, 80}, {NAN, 10}};
  for (const auto& [x, value] : wanted) EXPECT_EQ(at(texture, Geometry::D1, x), value) << x;
}

TEST(Sampler, AddressModesOfPoints) {
  struct Case {
    CUaddress_mode mode;
    float x, value;
  };
  // For N = 4, texel i covers [i/4, (i+1)/4).
  const Case cases[] = {{wrap, 0.3F, 20},    {wrap, 1.3F, 20},    {wrap, -0.1F, 80},   {wrap, -1.9F, 10},
                        {wrap, 1e8F, 10},    {mirror, 0.3F, 20},  {mirror, 1.1F, 80},  {mirror, 1.9F, 10},
                        {mirror, -0.1F, 10}, {mirror, -0.9F, 80}, {mirror, 2.3F, 20},  {clamp, 1.1F, 80},
                        {clamp, -0.1F, 10},  {border, 1.0F, 7},   {border, -0.01F, 7}, {border, 0.99F, 80},
                        {wrap, INFINITY, 10}};
  for (const Case& one : cases) {
    Texture texture = row({10, 20, 40, 80}, point_mode, true, one.mode);
    texture.sampler.border[0] = 7;
    EXPECT_EQ(at(texture, Geometry::D1, one.x), one.value) << one.mode << " at " << one.x;
  }
}

TEST(Sampler, WrapAndMirrorHoldForNormalizedCoordinatesOnly) {
  for (const CUaddress_mode mode : {wrap, mirror}) {
    const Texture texture = row({10, 20, 40, 80}, point_mode, false, mode);
    EXPECT_EQ(at(texture, Geometry::D1, 5), 80);
    EXPECT_EQ(at(texture, Geometry::D1, -1), 10);
  }
}

TEST(Sampler, LinearBlendsBetweenMiddles) {
  const Texture texture = row({10, 20, 40, 80}, linear_mode, false, clamp);
  // The centre of texel i is at i + 1/2. Therefore 1.25 is three quarters of the way from the first to the second
  // centre.
  const std::pair<float, float> wanted[] = {{0.5F, 10},  {1, 15},     {1.25F, 17.5F}, {2.5F, 40},
                                            {3.25F, 70}, {0.25F, 10}, {3.75F, 80},    {100, 80}};
  for (const auto& [x, value] : wanted) EXPECT_EQ(at(texture, Geometry::D1, x), value) << x;
}

TEST(Sampler, WeightsHaveEightBitsOfFraction) {
  const Texture texture = row({0, 256}, linear_mode, false, clamp);
  for (int k = 0; k <= 2560; ++k) {
    const float x = 0.5F + static_cast<float>(k) / 2560;
    const float value = at(texture, Geometry::D1, x);
    EXPECT_EQ(value, std::floor(value)) << x;
    EXPECT_NEAR(value, static_cast<float>(k) / 10, 0.5001F) << x;  // half a step of 1/256
  }
}

TEST(Sampler, AddressModesOfLinearFiltering) {
  struct Case {
    CUaddress_mode mode;
    float x, value;
  };
  // At x = 0 both texels next to the edge have a weight of one half. With a border, half of the weight comes from
  // outside of the only row.
  const Case cases[] = {{wrap, 0, 45},  {wrap, 1, 45},      {mirror, 0, 10}, {mirror, 1, 80},
                        {clamp, 0, 10}, {border, 0, 77.5F}, {border, 1, 95}, {wrap, 0.9375F, 62.5F}};
  for (const Case& one : cases) {
    Texture texture = row({10, 20, 40, 80}, linear_mode, true, one.mode);
    texture.sampler.border[0] = 100;
    EXPECT_EQ(at(texture, Geometry::D1, one.x), one.value) << one.mode << " at " << one.x;
  }
}

// Linear interpolation reproduces a plane a x + b y + c z, up to the weights' steps of 1/256.
TEST(Sampler, PlanesStayPlanesInEveryDimension) {
  constexpr std::uint32_t n = 8;
  std::vector<float> texels;
  for (std::uint32_t k = 0; k < n * n * n; ++k) {
    texels.push_back(static_cast<float>(k % n + 3 * (k / n % n) + 5 * (k / n / n)));
  }
  const Texture volume = texture_of(floats_of(Geometry::D3, {n, n, n}, texels), linear_mode, true);
  std::mt19937 random(test_seed(1));
  std::uniform_real_distribution<float> inside(0.5F, n - 0.5F);
  for (int k = 0; k < 2000; ++k) {
    const float x = inside(random), y = inside(random), z = inside(random);
    const float wanted = (x - 0.5F) + 3 * (y - 0.5F) + 5 * (z - 0.5F);
    EXPECT_NEAR(at(volume, Geometry::D3, x / n, y / n, z / n), wanted, 9.01F / 512) << x << " " << y << " " << z;
    EXPECT_NEAR(at(volume, Geometry::D2, x / n, y / n), (x - 0.5F) + 3 * (y - 0.5F), 4.01F / 512) << x << " " << y;
  }
}

TEST(Sampler, ATexelWithoutWeightDoesNotCount) {
  const Texture texture = row({1, INFINITY, NAN}, linear_mode, false, clamp);
  EXPECT_EQ(at(texture, Geometry::D1, 0.5F), 1);
  EXPECT_EQ(at(texture, Geometry::D1, 1.5F), INFINITY);
  EXPECT_EQ(bits_of(at(texture, Geometry::D1, 2)), 0x7fff'ffffU);
}

TEST(Sampler, LayersAreHeldToTheLastAndNotFiltered) {
  const Texture texture =
      texture_of(floats_of(Geometry::D2Layered, {2, 1, 3}, {1, 2, 10, 20, 100, 200}), linear_mode, false);
  EXPECT_EQ(at(texture, Geometry::D2Layered, 1, 0, 0, 1), 15);
  EXPECT_EQ(at(texture, Geometry::D2Layered, 1, 0, 0, 2), 150);
  EXPECT_EQ(at(texture, Geometry::D2Layered, 1, 0, 0, 7), 150);
  EXPECT_EQ(at(texture, Geometry::D2Layered, 1, 0, 0, ~0U), 150);
  const Texture rows = texture_of(floats_of(Geometry::D1Layered, {2, 1, 2}, {1, 2, 10, 20}), linear_mode, false);
  EXPECT_EQ(at(rows, Geometry::D1Layered, 1, 0, 0, 1), 15);
}

TEST(Sampler, OffsetsAreTexels) {
  const Texture texture = row({10, 20, 40, 80}, linear_mode, true, wrap);
  const auto with = [&](std::int32_t offset) {
    return as_float(sample(texture, {Geometry::D1, {0.125F, 0, 0}, 0, {offset, 0, 0}}, 0)[0]);
  };
  EXPECT_EQ(with(0), 10);
  EXPECT_EQ(with(2), 40);
  EXPECT_EQ(with(-1), 80);
}

TEST(Sampler, FetchesOutsideFollowTheAddressModeOfPlainCoordinates) {
  Texture texture = texture_of(floats_of(Geometry::D2, {2, 2}, {1, 2, 3, 4}), linear_mode, false, wrap);
  const auto texel = [&](std::int32_t x, std::int32_t y, std::int32_t level = 0) {
    return fetch(texture, {Geometry::D2, {x, y, 0}, 0}, level);
  };
  EXPECT_EQ(as_float(texel(1, 1)[0]), 4);
  EXPECT_EQ(texel(1, 1)[3], 0U);
  const std::tuple<std::int32_t, std::int32_t, float> outside[] = {{-1, 0, 1}, {2, 0, 2},         {0, -1, 1},
                                                                   {0, 2, 3},  {INT32_MAX, 0, 2}, {0, INT32_MIN, 1}};
  for (const auto& [x, y, value] : outside) EXPECT_EQ(as_float(texel(x, y)[0]), value) << x << "," << y;
  EXPECT_EQ(texel(0, 0, 1), (ChannelBits{}));
  EXPECT_EQ(texel(0, 0, -1), (ChannelBits{}));
  texture.sampler.address[0] = border;
  texture.sampler.border[0] = 7;
  EXPECT_EQ(as_float(texel(2, 0)[0]), 7);
  EXPECT_EQ(as_float(texel(0, 2)[0]), 3);
  texture.sampler.normalized = true;
  EXPECT_EQ(as_float(texel(1, 1)[0]), 4);
  for (const auto& [x, y, value] : outside) EXPECT_EQ(texel(x, y), (ChannelBits{})) << x << "," << y;
}

TEST(Sampler, NumbersInOneDimensionAreThoseOfLinearMemory) {
  Texture texture = row({10, 20}, point_mode, false, clamp);
  EXPECT_EQ(fetch(texture, {Geometry::D1, {1, 0, 0}, 0}, 0), (ChannelBits{}));
  texture.image.geometry = Geometry::Linear;
  EXPECT_EQ(as_float(fetch(texture, {Geometry::D1, {1, 0, 0}, 0}, 0)[0]), 20);
  EXPECT_EQ(fetch(texture, {Geometry::D1, {2, 0, 0}, 0}, 0), (ChannelBits{}));
}

TEST(Sampler, LinearMemoryIsNeitherFilteredNorWrapped) {
  Texture texture = row({10, 20, 40, 80}, linear_mode, true, wrap);
  texture.image.geometry = Geometry::Linear;
  EXPECT_EQ(at(texture, Geometry::D1, 2.75F), 40);
  EXPECT_EQ(at(texture, Geometry::D1, 4), 0);
  EXPECT_EQ(at(texture, Geometry::D1, -0.5F), 0);
  EXPECT_EQ(at(texture, Geometry::D1, NAN), 0);
}

TEST(Sampler, GatherTakesFourTexelsFromTheLowerLeft) {
  std::vector<float> channels;
  for (int k = 0; k < 9; ++k) channels.insert(channels.end(), {float(k), float(10 + k), float(20 + k), float(30 + k)});
  const Texture texture = texture_of(image_of(Geometry::D2, {CU_AD_FORMAT_FLOAT, 4}, {3, 3}, channels), point_mode);
  const auto four = [&](float x, float y, unsigned channel) {
    const ChannelBits bits = gather(texture, {Geometry::D2, {x, y, 0}, 0, {}}, channel);
    return std::array{as_float(bits[0]), as_float(bits[1]), as_float(bits[2]), as_float(bits[3])};
  };
  EXPECT_EQ(four(1, 1, 0), (std::array{3.0F, 4.0F, 1.0F, 0.0F}));
  EXPECT_EQ(four(2, 1, 1), (std::array{14.0F, 15.0F, 12.0F, 11.0F}));
  EXPECT_EQ(four(0, 0, 3), (std::array{30.0F, 30.0F, 30.0F, 30.0F}));
  EXPECT_EQ(four(3, 3, 2), (std::array{28.0F, 28.0F, 28.0F, 28.0F}));
}

// The bytes between rows and slices would be read as a large negative number.
TEST(Sampler, ATexelBeyondItsReachIsNotRead) {
  const Texture texture = texture_of(floats_of(Geometry::Linear, {4}, {1, 2, 3, 4}));
  const auto read = [&](std::int32_t x, std::uint64_t bytes) {
    Reach reach{bytes};
    const float value = as_float(fetch(texture, {Geometry::D1, {x, 0, 0}, 0}, 0, &reach)[0]);
    EXPECT_EQ(value == 0, reach.left) << x << " of " << bytes;
    return value;
  };
  EXPECT_EQ(read(2, 12), 3);
  EXPECT_EQ(read(3, 16), 4);
  for (const std::uint64_t bytes : {0, 3, 12, 15}) EXPECT_EQ(read(3, bytes), 0) << bytes;
  EXPECT_EQ(read(0, 3), 0);
  Reach reach{0};
  EXPECT_EQ(as_float(fetch(texture, {Geometry::D1, {4, 0, 0}, 0}, 0, &reach)[0]), 0);
  EXPECT_FALSE(reach.left) << "a texel outside of the texture is not read";
}

TEST(Sampler, NothingOutsideOfTheTexelsCounts) {
  std::mt19937 random(test_seed(3));
  const auto below = [&](std::uint32_t count) { return static_cast<std::uint32_t>(random() % count); };
  const auto coordinate = [&] {
    const float values[] = {0, 1, -1, 0.5F, 3.99F, 1e30F, -1e30F, INFINITY, -INFINITY, NAN, 1e-30F, 65536};
    return below(2) == 0 ? values[below(12)] : static_cast<float>(random() % 4096) / 256 - 8;
  };
  for (int k = 0; k < 20000; ++k) {
    const Size size{1 + below(5), 1 + below(5), 1 + below(13)};
    std::vector<float> texels(size.width * size.height * size.depth);
    for (float& texel : texels) texel = static_cast<float>(1 + below(100));
    const auto geometry = [&] { return static_cast<Geometry>(below(8)); };
    Texture texture =
        texture_of(floats_of(geometry(), size, texels), below(2) == 0 ? point_mode : linear_mode, below(2) == 0);
    for (CUaddress_mode& mode : texture.sampler.address) mode = static_cast<CUaddress_mode>(below(4));
    texture.sampler.seamless_cube = below(2) == 0;
    texture.sampler.level_bias = coordinate();
    texture.sampler.max_level = coordinate();
    Geometry asked = geometry();
    if (asked == Geometry::Linear) asked = Geometry::D1;
    const SamplePoint point{asked,
                            {coordinate(), coordinate(), coordinate()},
                            below(2) == 0 ? below(4) : ~0U,
                            {static_cast<std::int32_t>(below(16)) - 8, 0, INT32_MAX}};
    const float level = level_of_gradient(texture, point, {coordinate(), coordinate(), 0}, {0, coordinate(), 1});
    for (const float value : {as_float(sample(texture, point, level)[0]), as_float(gather(texture, point, 0)[1])}) {
      ASSERT_TRUE(value >= 0 && value <= 100) << value;
    }
  }
}

// ---- levels

Texture three_levels(CUfilter_mode between) {
  Image image = floats_of(Geometry::D2, {4, 4}, std::vector<float>(16, 100));
  add_level(image, floats_of(Geometry::D2, {2, 2}, std::vector<float>(4, 200)));
  add_level(image, floats_of(Geometry::D2, {1, 1}, {400}));
  Texture texture = texture_of(std::move(image), linear_mode, true);
  texture.sampler.mipmap_filter = between;
  texture.sampler.max_level = 10;
  return texture;
}

float level_at(const Texture& texture, float level) { return at(texture, Geometry::D2, 0.5F, 0.5F, 0, 0, level); }

TEST(Levels, AreBlendedOrTheNearestTaken) {
  const Texture blended = three_levels(linear_mode);
  const std::pair<float, float> wanted[] = {{0, 100}, {0.25F, 125}, {1, 200},   {1.5F, 300},     {2, 400},
                                            {7, 400}, {-3, 100},    {NAN, 100}, {INFINITY, 400}, {-INFINITY, 100}};
  for (const auto& [level, value] : wanted) EXPECT_EQ(level_at(blended, level), value) << level;
  const Texture nearest = three_levels(point_mode);
  for (const auto& [level, value] : {std::pair{0.4F, 100.0F}, {0.6F, 200.0F}, {1.4F, 200.0F}, {1.6F, 400.0F}}) {
    EXPECT_EQ(level_at(nearest, level), value) << level;
  }
}

TEST(Levels, BiasComesBeforeTheLimits) {
  Texture texture = three_levels(linear_mode);
  texture.sampler.level_bias = 0.5F;
  EXPECT_EQ(level_at(texture, 0), 150);
  texture.sampler.max_level = 1;
  EXPECT_EQ(level_at(texture, 5), 200);
  texture.sampler.min_level = 0.75F;
  EXPECT_EQ(level_at(texture, 0), 175);
  EXPECT_EQ(level_at(texture, -4), 175);
}

TEST(Levels, WithoutOneOnlyTheLimitsCount) {
  Texture texture = three_levels(linear_mode);
  texture.sampler.level_bias = 0.5F;
  const auto without = [&] {
    return as_float(sample(texture, {Geometry::D2, {0.5F, 0.5F, 0}, 0, {}}, std::nullopt)[0]);
  };
  EXPECT_EQ(without(), 100);
  texture.sampler.min_level = 0.75F;
  EXPECT_EQ(without(), 175);
}

TEST(Levels, FractionsAreCutOffAtEightBits) {
  EXPECT_EQ(levels_of(three_levels(linear_mode), 1 + 128.5F / 256).weight, 128U);
}

TEST(Levels, FollowTheLargerGradient) {
  const Texture texture = three_levels(linear_mode);
  const SamplePoint point{Geometry::D2, {0.5F, 0.5F, 0}, 0, {}};
  const auto level = [&](std::array<float, 3> dx, std::array<float, 3> dy) {
    return level_of_gradient(texture, point, dx, dy);
  };
  EXPECT_EQ(level({0.25F, 0, 0}, {0, 0, 0}), 0);  // one texel of four
  EXPECT_EQ(level({0.25F, 0, 0}, {0, 0.5F, 0}), 1);
  EXPECT_EQ(level({1, 0, 0}, {0, 0.5F, 0}), 2);
  EXPECT_NEAR(level({0.75F, 1, 0}, {0, 0, 0}), std::log2(5.0F), 1e-6F);  // gradients of 3 and 4 texels
  EXPECT_EQ(level({0, 0, 9}, {0, 0, 9}), -INFINITY);
  // On a cube face of four texels, a step of a quarter of the distance is half a texel.
  const SamplePoint ahead{Geometry::Cube, {0, 0, 2}, 0, {}};
  EXPECT_EQ(level_of_gradient(texture, ahead, {0.5F, 0, 0}, {0, 0, 0}), -1);
  EXPECT_EQ(level_of_gradient(texture, ahead, {0, 0, 5}, {0, 4, 0}), 2);
}

// ---- formats

template <class T>
ChannelBits read_one(CUarray_format format, unsigned channels, std::vector<T> texel, bool as_integer = false,
                     bool srgb = false) {
  texel.resize(channels);
  Texture texture = texture_of(image_of(Geometry::D1, {format, channels}, {1}, texel));
  texture.sampler.read_as_integer = as_integer;
  texture.sampler.srgb = srgb;
  return sample(texture, {Geometry::D1, {0, 0, 0}, 0, {}}, 0);
}

ChannelBits floats(float r, float g, float b, float a) { return {bits_of(r), bits_of(g), bits_of(b), bits_of(a)}; }

TEST(Formats, IntegersUpToSixteenBitsBecomeFractions) {
  EXPECT_EQ(read_one<std::uint8_t>(CU_AD_FORMAT_UNSIGNED_INT8, 4, {0, 255, 51, 1}), floats(0, 1, 0.2F, 1 / 255.0F));
  EXPECT_EQ(read_one<std::int8_t>(CU_AD_FORMAT_SIGNED_INT8, 4, {-128, -127, 127, 1}), floats(-1, -1, 1, 1 / 127.0F));
  EXPECT_EQ(read_one<std::uint16_t>(CU_AD_FORMAT_UNSIGNED_INT16, 2, {65535, 13107}), floats(1, 0.2F, 0, 0));
  EXPECT_EQ(read_one<std::int16_t>(CU_AD_FORMAT_SIGNED_INT16, 2, {-32768, -32767}), floats(-1, -1, 0, 0));
  EXPECT_EQ(read_one<std::uint8_t>(CU_AD_FORMAT_UNORM_INT8X2, 2, {255, 51}, true), floats(1, 0.2F, 0, 0));
  EXPECT_EQ(read_one<std::int16_t>(CU_AD_FORMAT_SNORM_INT16X1, 1, {-32768}, true), floats(-1, 0, 0, 0));
  // Three channels of 10 bits and one of 2: 1023, 0, 341 and 1.
  EXPECT_EQ(read_one<std::uint8_t>(CU_AD_FORMAT_UNORM_INT_101010_2, 4, {0xff, 0x03, 0x50, 0x55}),
            floats(1, 0, 341 / 1023.0F, 1 / 3.0F));
}

TEST(Formats, IntegersStayIntegersWhenAskedTo) {
  EXPECT_EQ(read_one<std::uint8_t>(CU_AD_FORMAT_UNSIGNED_INT8, 4, {0, 255, 51, 1}, true), (ChannelBits{0, 255, 51, 1}));
  EXPECT_EQ(read_one<std::int8_t>(CU_AD_FORMAT_SIGNED_INT8, 2, {-128, 127}, true),
            (ChannelBits{static_cast<std::uint32_t>(-128), 127, 0, 0}));
  EXPECT_EQ(read_one<std::int16_t>(CU_AD_FORMAT_SIGNED_INT16, 1, {-2}, true), (ChannelBits{0xffff'fffe, 0, 0, 0}));
  for (const bool as_integer : {false, true}) {
    EXPECT_EQ(read_one<std::uint32_t>(CU_AD_FORMAT_UNSIGNED_INT32, 2, {0xdead'beef, 3}, as_integer),
              (ChannelBits{0xdead'beef, 3, 0, 0}));
    EXPECT_EQ(read_one<std::int32_t>(CU_AD_FORMAT_SIGNED_INT32, 1, {-7}, as_integer),
              (ChannelBits{0xffff'fff9, 0, 0, 0}));
  }
}

TEST(Formats, FloatsAreTakenAsTheyAre) {
  EXPECT_EQ(read_one<float>(CU_AD_FORMAT_FLOAT, 4, {1.5F, -0.0F, INFINITY, 1e-40F}),
            floats(1.5F, -0.0F, INFINITY, 1e-40F));
  EXPECT_EQ(read_one<std::uint16_t>(CU_AD_FORMAT_HALF, 4, {0x3c00, 0xc000, 0x7bff, 0x0001}),
            floats(1, -2, 65504, 5.9604645e-8F));
  EXPECT_EQ(read_one<float>(CU_AD_FORMAT_FLOAT, 1, {2}, true), floats(2, 0, 0, 0));
}

// The transfer function in doubles. A power in single precision may differ by a few units in the last place.
TEST(Formats, SrgbDecodesColoursAndNotAlpha) {
  for (int value = 0; value < 256; ++value) {
    const auto byte = static_cast<std::uint8_t>(value);
    const ChannelBits bits =
        read_one<std::uint8_t>(CU_AD_FORMAT_UNSIGNED_INT8, 4, {byte, byte, byte, byte}, false, true);
    const double encoded = value / 255.0;
    const double linear = encoded <= 0.04045 ? encoded / 12.92 : std::pow((encoded + 0.055) / 1.055, 2.4);
    for (unsigned k = 0; k < 3; ++k) EXPECT_NEAR(as_float(bits[k]), linear, 1e-6 * linear) << value;
    EXPECT_EQ(as_float(bits[3]), static_cast<float>(value) / 255);
  }
}

TEST(Formats, SrgbComesBeforeFiltering) {
  Texture texture =
      texture_of(image_of<std::uint8_t>(Geometry::D1, {CU_AD_FORMAT_UNSIGNED_INT8, 1}, {2}, {0, 255}), linear_mode);
  texture.sampler.srgb = true;
  EXPECT_EQ(at(texture, Geometry::D1, 1), 0.5F);
}

TEST(Formats, IntegersAreNotFiltered) {
  Texture texture =
      texture_of(image_of<std::uint8_t>(Geometry::D1, {CU_AD_FORMAT_UNSIGNED_INT8, 1}, {2}, {10, 20}), linear_mode);
  texture.sampler.read_as_integer = true;
  EXPECT_EQ(sample(texture, {Geometry::D1, {1, 0, 0}, 0, {}}, 0)[0], 20u);
  EXPECT_EQ(sample(texture, {Geometry::D1, {0.9F, 0, 0}, 0, {}}, 0)[0], 10u);
}

TEST(Formats, ABorderHasTheChannelsOfTheFormat) {
  Texture texture = row({1, 2}, point_mode, false, border);
  for (unsigned k = 0; k < 4; ++k) texture.sampler.border[k] = static_cast<float>(5 + k);
  EXPECT_EQ(sample(texture, {Geometry::D1, {-1, 0, 0}, 0, {}}, 0), floats(5, 0, 0, 0));
  texture.image.format = {CU_AD_FORMAT_UNSIGNED_INT32, 1};
  texture.sampler.border[0] = as_float(77);
  EXPECT_EQ(sample(texture, {Geometry::D1, {-1, 0, 0}, 0, {}}, 0), (ChannelBits{77, 0, 0, 0}));
}

TEST(Formats, ABorderIsHeldToTheFormatsRange) {
  Texture texture =
      texture_of(image_of<std::int8_t>(Geometry::D1, {CU_AD_FORMAT_SIGNED_INT8, 4}, {1}, {1, 2, 3, 4}), point_mode);
  texture.sampler.address[0] = border;
  const float given[] = {1.5F, -1.5F, 0.5F, -0.5F};
  std::copy(std::begin(given), std::end(given), texture.sampler.border);
  const auto read = [&] { return sample(texture, {Geometry::D1, {-1, 0, 0}, 0, {}}, 0); };
  EXPECT_EQ(read(), floats(1, -1, 64 / 127.0F, -64 / 127.0F));
  texture.image.format.format = CU_AD_FORMAT_UNSIGNED_INT8;
  EXPECT_EQ(read(), floats(1, 0, 128 / 255.0F, 0));
}

TEST(Formats, SizesAndWhatIsNotServed) {
  EXPECT_EQ(texel_bytes({CU_AD_FORMAT_UNSIGNED_INT8, 1}), 1u);
  EXPECT_EQ(texel_bytes({CU_AD_FORMAT_HALF, 4}), 8u);
  EXPECT_EQ(texel_bytes({CU_AD_FORMAT_FLOAT, 4}), 16u);
  EXPECT_EQ(texel_bytes({CU_AD_FORMAT_UNORM_INT16X4, 4}), 8u);
  EXPECT_EQ(texel_bytes({CU_AD_FORMAT_UNORM_INT_101010_2, 4}), 4u);
  EXPECT_EQ(texel_bytes({CU_AD_FORMAT_FLOAT, 3}), 0u);
  EXPECT_EQ(texel_bytes({CU_AD_FORMAT_BC1_UNORM, 4}), 0u);
  EXPECT_EQ(texel_bytes({CU_AD_FORMAT_NV12, 3}), 0u);
  EXPECT_EQ(texel_bytes({static_cast<CUarray_format>(0x7777), 1}), 0u);
}

TEST(Formats, FormattedStoresHoldValuesToTheirRange) {
  std::byte texel[16] = {};
  const auto stored = [&](CUarray_format format, unsigned channels, const ChannelBits& bits) {
    std::memset(texel, 0, sizeof texel);
    write_texel({format, channels}, texel, bits, 4);
    std::uint64_t word = 0;
    std::memcpy(&word, texel, sizeof word);
    return word;
  };
  const auto minus = [](int value) { return static_cast<std::uint32_t>(-value); };
  EXPECT_EQ(stored(CU_AD_FORMAT_UNSIGNED_INT8, 4, {0, 255, 256, 0xffff'ffff}), 0xffff'ff00u);
  EXPECT_EQ(stored(CU_AD_FORMAT_SIGNED_INT8, 4, {127, 128, minus(128), minus(129)}), 0x8080'7f7fu);
  EXPECT_EQ(stored(CU_AD_FORMAT_SIGNED_INT16, 2, {40000, minus(40000), 1, 1}), 0x8000'7fffu);
  EXPECT_EQ(stored(CU_AD_FORMAT_UNSIGNED_INT32, 1, {0xdead'beef, 1, 1, 1}), 0xdead'beefu);
  EXPECT_EQ(stored(CU_AD_FORMAT_UNORM_INT8X4, 4, floats(-1, 0.5F, 2, NAN)), 0x00ff'8000u);
  EXPECT_EQ(stored(CU_AD_FORMAT_SNORM_INT8X2, 2, floats(-2, 1, 0, 0)), 0x7f81u);
  EXPECT_EQ(stored(CU_AD_FORMAT_HALF, 2, floats(1, -2, 0, 0)), 0xc000'3c00u);
  EXPECT_EQ(stored(CU_AD_FORMAT_UNORM_INT_101010_2, 4, floats(1, 0, 1, 1)), 0xfff0'03ffu);
}

}  // namespace
}  // namespace simgpu
