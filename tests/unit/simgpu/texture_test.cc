// Tests texture instructions: every variant on textures in the device's table, faults, and refused instructions.
// sampler_test.cc tests the rules of sampling.
#include <atomic>
#include <cstring>
#include <thread>

#include "host/simgpu/vm/texture.h"
#include "tests/unit/simgpu/texture_kernel.h"

namespace simgpu {
namespace {

constexpr CUfilter_mode linear_mode = CU_TR_FILTER_MODE_LINEAR;
constexpr CUfilter_mode point_mode = CU_TR_FILTER_MODE_POINT;

class Textures : public TextureKernel {
 protected:
  // Channel c of texel (x, y, z) has the value 100 z + 10 y + x + 1000 c.
  static Image numbered(Geometry geometry, Size size, unsigned channels = 1) {
    std::vector<float> texels;
    for (std::uint32_t z = 0; z < size.depth; ++z) {
      for (std::uint32_t y = 0; y < size.height; ++y) {
        for (std::uint32_t x = 0; x < size.width; ++x) {
          for (unsigned c = 0; c < channels; ++c) texels.push_back(static_cast<float>(1000 * c + 100 * z + 10 * y + x));
        }
      }
    }
    return image_of(geometry, {CU_AD_FORMAT_FLOAT, channels}, size, texels);
  }
  std::uint64_t insert(Image image, CUfilter_mode filter = point_mode, bool normalized = false) {
    return table().insert(texture_of(std::move(image), filter, normalized));
  }
};

constexpr const char* into = "{%r20, %r21, %r22, %r23}";
std::string text(const std::string& opcode, const std::string& rest) {
  return opcode + " " + into + ", [%rd1, " + rest;
}

TEST_F(Textures, EachGeometryWithFloatCoordinates) {
  const Row row = row_of(1.5F, 2.5F, 3.5F, 0.0F);
  EXPECT_EQ(first(text("tex.1d.v4.f32.f32", "{%f0}];"), insert(numbered(Geometry::D1, {4})), row), 1);
  EXPECT_EQ(first(text("tex.1d.v4.f32.f32", "%f0];"), insert(numbered(Geometry::D1, {4})), row), 1);
  EXPECT_EQ(first(text("tex.2d.v4.f32.f32", "{%f0, %f1}];"), insert(numbered(Geometry::D2, {4, 4})), row), 21);
  const std::uint64_t volume = insert(numbered(Geometry::D3, {4, 4, 4}));
  EXPECT_EQ(first(text("tex.3d.v4.f32.f32", "{%f0, %f1, %f2, %f3}];"), volume, row), 321);
  const std::uint64_t rows = insert(numbered(Geometry::D1Layered, {4, 1, 4}));
  EXPECT_EQ(first(text("tex.a1d.v4.f32.f32", "{%r4, %f0}];"), rows, row_of(1.5F, 0, 0, 0, 2)), 201);
  const std::uint64_t layers = insert(numbered(Geometry::D2Layered, {4, 4, 4}));
  EXPECT_EQ(first(text("tex.a2d.v4.f32.f32", "{%r4, %f0, %f1, %f1}];"), layers, row_of(1.5F, 2.5F, 0, 0, 3)), 321);
  const std::uint64_t cube = insert(numbered(Geometry::Cube, {2, 2, 6}));
  EXPECT_EQ(first(text("tex.cube.v4.f32.f32", "{%f0, %f1, %f2, %f2}];"), cube, row_of(0.5F, -4.0F, 1.0F)), 301);
  const std::uint64_t cubes = insert(numbered(Geometry::CubeLayered, {2, 2, 12}));
  EXPECT_EQ(first(text("tex.acube.v4.f32.f32", "{%r4, %f0, %f1, %f2}];"), cubes, row_of(0.5F, -4.0F, 1.0F, 0, 1)), 901);
  EXPECT_EQ(first(text("tex.2d.v4.f32.f32", "{0f3FC00000, %f1}];"), insert(numbered(Geometry::D2, {4, 4})), row), 21);
}

TEST_F(Textures, EachGeometryWithNumbers) {
  const Row row = row_of(1, 2, 3, 0);
  EXPECT_EQ(first(text("tex.1d.v4.f32.s32", "{%r0}];"), insert(numbered(Geometry::Linear, {4})), row), 1);
  EXPECT_EQ(first(text("tex.1d.v4.f32.s32", "{%r0}];"), insert(numbered(Geometry::D1, {4})), row), 0);
  EXPECT_EQ(first(text("tex.2d.v4.f32.s32", "{%r0, %r1}];"), insert(numbered(Geometry::D2, {4, 4})), row), 21);
  const std::uint64_t volume = insert(numbered(Geometry::D3, {4, 4, 4}));
  EXPECT_EQ(first(text("tex.3d.v4.f32.s32", "{%r0, %r1, %r2, %r2}];"), volume, row), 321);
  const std::uint64_t layers = insert(numbered(Geometry::D2Layered, {4, 4, 4}));
  EXPECT_EQ(first(text("tex.a2d.v4.f32.s32", "{%r2, %r0, %r1, %r1}];"), layers, row), 321);
  const std::uint64_t rows = insert(numbered(Geometry::D1Layered, {4, 1, 4}));
  EXPECT_EQ(first(text("tex.a1d.v4.f32.s32", "{%r2, %r0}];"), rows, row), 301);
}

TEST_F(Textures, LanesReadForThemselves) {
  std::vector<Row> rows;
  for (int k = 0; k < 100; ++k) rows.push_back(row_of(k % 8, k / 8));
  const std::uint64_t object = insert(numbered(Geometry::D2, {8, 16}, 4));
  const auto answers = run_rows(text("tex.2d.v4.f32.s32", "{%r0, %r1}];"), object, rows);
  for (int k = 0; k < 100; ++k) {
    for (int c = 0; c < 4; ++c) {
      EXPECT_EQ(as_float(answers[static_cast<std::size_t>(k)][static_cast<std::size_t>(c)]),
                static_cast<float>(1000 * c + 10 * (k / 8) + k % 8));
    }
  }
}

TEST_F(Textures, AGuardKeepsLanesAsTheyAre) {
  const std::uint64_t object = insert(numbered(Geometry::Linear, {64}));
  std::vector<Row> rows;
  for (int k = 0; k < 32; ++k) rows.push_back(row_of(k, k % 3 == 0 ? 1 : 0));
  const auto answers = run_rows(
      "setp.ne.u32 %p1, %r1, 0;\n@%p1 tex.1d.v4.f32.s32 {%r20, %r21, %r22, %r23}, [%rd1, {%r0}];", object, rows);
  for (std::size_t k = 0; k < 32; ++k) EXPECT_EQ(answers[k][0], k % 3 == 0 ? word(static_cast<float>(k)) : 0u) << k;
}

TEST_F(Textures, ResultsMayOverwriteCoordinates) {
  const std::uint64_t object = insert(numbered(Geometry::D2, {4, 4}, 4));
  const std::string swap =
      "tex.2d.v4.s32.s32 {%r1, %r0, %r20, %r21}, [%rd1, {%r0, %r1}]; mov.u32 %r22, %r0; mov.u32 %r23, %r1;";
  EXPECT_EQ(colors(swap, object, row_of(1, 2)), (std::array{2021.0F, 3021.0F, 1021.0F, 21.0F}));
}

TEST_F(Textures, HalvesAloneAndInPairs) {
  const std::uint64_t object =
      table().insert(texture_of(image_of<float>(Geometry::Linear, {CU_AD_FORMAT_FLOAT, 4}, {1}, {1, -2, 0.5F, 65504})));
  const std::string pack = " mov.b32 %r20, {%h0, %h1}; mov.b32 %r21, {%h2, %h3};";
  const auto alone = run_rows("tex.1d.v4.f16.s32 {%h0, %h1, %h2, %h3}, [%rd1, {%r0}];" + pack, object, {row_of(0)});
  EXPECT_EQ(alone[0][0], 0xc000'3c00u);
  EXPECT_EQ(alone[0][1], 0x7bff'3800u);
  const auto pairs = run_rows("tex.1d.v2.f16x2.f32 {%r20, %r21}, [%rd1, {%f0}];", object, {row_of(0.5F)});
  EXPECT_EQ(pairs, alone);
}

TEST_F(Textures, IntegersGoToRegistersAsTheyAre) {
  Texture texture =
      texture_of(image_of<std::int8_t>(Geometry::Linear, {CU_AD_FORMAT_SIGNED_INT8, 2}, {2}, {1, 2, -3, 4}));
  texture.sampler.read_as_integer = true;
  const std::uint64_t object = table().insert(texture);
  const auto answer = run_rows(text("tex.1d.v4.s32.s32", "{%r0}];"), object, {row_of(1)});
  EXPECT_EQ(answer[0], (Answer{0xffff'fffd, 4, 0, 0}));
  texture.sampler.read_as_integer = false;
  EXPECT_EQ(first(text("tex.1d.v4.f32.s32", "{%r0}];"), table().insert(texture), row_of(1)), -3 / 127.0F);
}

TEST_F(Textures, LevelsByNumberAndGradient) {
  Image image = floats_of(Geometry::D2, {4, 4}, std::vector<float>(16, 100));
  add_level(image, floats_of(Geometry::D2, {2, 2}, std::vector<float>(4, 200)));
  Texture texture = texture_of(std::move(image), linear_mode, true);
  texture.sampler.mipmap_filter = linear_mode;
  texture.sampler.max_level = 9;
  const std::uint64_t object = table().insert(texture);
  const std::string at = "{%f0, %f0}]";
  EXPECT_EQ(first(text("tex.2d.v4.f32.f32", at + ";"), object, row_of(0.5F)), 100);
  EXPECT_EQ(first(text("tex.base.2d.v4.f32.f32", at + ";"), object, row_of(0.5F)), 100);
  EXPECT_EQ(first(text("tex.level.2d.v4.f32.f32", at + ", %f1;"), object, row_of(0.5F, 0.25F)), 125);
  EXPECT_EQ(first(text("tex.grad.2d.v4.f32.f32", at + ", {%f1, %f2}, {%f3, %f4};"), object,
                  row_of(0.5F, 0.0F, 0.25F, 0.5F, 0.0F)),
            200);
  EXPECT_EQ(first(text("tex.level.2d.v4.f32.s32", "{%r0, %r0}], %r1;"), object, row_of(1, 1)), 200);
  EXPECT_EQ(first(text("tex.level.2d.v4.f32.s32", "{%r0, %r0}], %r1;"), object, row_of(3, 1)), 200);
  EXPECT_EQ(first(text("tex.level.2d.v4.f32.s32", "{%r0, %r0}], %r1;"), object, row_of(0, 2)), 0);
}

TEST_F(Textures, GradientsOfEachGeometryLoadAndRun) {
  const std::pair<const char*, const char*> forms[] = {
      {"1d", "{%f0}], {%f1}, {%f2}"},
      {"a1d", "{%r9, %f0}], {%f1}, {%f2}"},
      {"2d", "{%f0, %f1}], {%f1, %f2}, {%f3, %f4}"},
      {"a2d", "{%r9, %f0, %f1, %f1}], {%f1, %f2}, {%f3, %f4}"},
      {"3d", "{%f0, %f1, %f2, %f2}], {%f1, %f2, %f3, %f3}, {%f1, %f2, %f3, %f3}"},
      {"cube", "{%f0, %f1, %f2, %f2}], {%f1, %f2, %f3, %f3}, {%f1, %f2, %f3, %f3}"},
      {"acube", "{%r9, %f0, %f1, %f2}], {%f1, %f2, %f3, %f3}, {%f1, %f2, %f3, %f3}"}};
  const std::uint64_t object = table().insert(texture_of(floats_of(Geometry::D1, {1}, {5}), linear_mode, true));
  for (const auto& [geometry, operands] : forms) {
    const std::string opcode = std::string("tex.grad.") + geometry + ".v4.f32.f32";
    EXPECT_EQ(first(text(opcode, std::string(operands) + ";"), object, row_of(0.1F, 0.2F, 0.3F, 0.4F, 0.5F)), 5)
        << geometry;
  }
}

TEST_F(Textures, OffsetsAndResidency) {
  const std::uint64_t object = insert(numbered(Geometry::D2, {8, 8}));
  EXPECT_EQ(first(text("tex.2d.v4.f32.f32", "{%f0, %f1}], {2, -1};"), object, row_of(1.5F, 2.5F)), 13);
  EXPECT_EQ(first(text("tex.2d.v4.f32.s32", "{%r0, %r1}], {%r2, %r3};"), object, row_of(1, 2, -1, 3)), 50);
  EXPECT_EQ(first(text("tex.2d.v4.f32.s32", "{%r0, %r1}], {%r2, %r3};"), object, row_of(INT32_MAX, 2, INT32_MAX, 3)),
            57);
  const auto answers =
      run_rows("tex.2d.v4.f32.f32 {%r20, %r21, %r22, %r23}|%p1, [%rd1, {%f0, %f1}]; selp.u32 %r24, 1, 2, %p1;", object,
               std::vector<Row>(40, row_of(1.5F, 2.5F)));
  for (const Answer& answer : answers) {
    EXPECT_EQ(as_float(answer[0]), 21);
    EXPECT_EQ(answer[4], 1u);
  }
}

TEST_F(Textures, GatherOfEachChannel) {
  const std::uint64_t object = insert(numbered(Geometry::D2, {4, 4}, 4));
  const char* channels[] = {"r", "g", "b", "a"};
  for (std::size_t k = 0; k < 4; ++k) {
    const auto four =
        colors(text(std::string("tld4.") + channels[k] + ".2d.v4.f32.f32", "{%f0, %f1}];"), object, row_of(2.0F, 1.0F));
    const float more = 1000 * static_cast<float>(k);
    EXPECT_EQ(four, (std::array{more + 11, more + 12, more + 2, more + 1})) << channels[k];
  }
  const auto moved = colors(text("tld4.r.2d.v4.f32.f32", "{%f0, %f1}], {1, 0};"), object, row_of(2.0F, 1.0F));
  EXPECT_EQ(moved, (std::array{12.0F, 13.0F, 3.0F, 2.0F}));
  const std::uint64_t layers = insert(numbered(Geometry::D2Layered, {4, 4, 2}));
  const auto second =
      colors(text("tld4.r.a2d.v4.f32.f32", "{%r4, %f0, %f1, %f1}];"), layers, row_of(2.0F, 1.0F, 0, 0, 1));
  EXPECT_EQ(second, (std::array{111.0F, 112.0F, 102.0F, 101.0F}));
}

TEST_F(Textures, Queries) {
  Image image =
      image_of<std::uint8_t>(Geometry::D2, {CU_AD_FORMAT_UNSIGNED_INT8, 4}, {4, 2}, std::vector<std::uint8_t>(32));
  add_level(image, image_of<std::uint8_t>(Geometry::D2, {CU_AD_FORMAT_UNSIGNED_INT8, 4}, {2, 1},
                                          std::vector<std::uint8_t>(8)));
  Texture texture = texture_of(std::move(image), linear_mode, true, CU_TR_ADDRESS_MODE_WRAP);
  const std::uint64_t object = table().insert(texture);
  const std::pair<const char*, std::uint32_t> wanted[] = {{"width", 4}, {"height", 2}, {"depth", 0}};
  for (const auto& [name, value] : wanted) {
    EXPECT_EQ(run_rows(std::string("txq.") + name + ".b32 %r20, [%rd1];", object, {Row{}})[0][0], value) << name;
  }
  const auto level = [&](const char* name, int number) {
    return run_rows(std::string("txq.level.") + name + ".b32 %r20, [%rd1], %r0;", object, {row_of(number)})[0][0];
  };
  EXPECT_EQ(level("width", 1), 2u);
  EXPECT_EQ(level("height", 1), 1u);
  EXPECT_EQ(level("width", 2), 0u);
  const std::uint64_t layers = insert(numbered(Geometry::D2Layered, {4, 4, 3}));
  EXPECT_EQ(run_rows("txq.depth.b32 %r20, [%rd1];", layers, {Row{}})[0][0], 3u);
  const std::uint64_t volume = insert(numbered(Geometry::D3, {4, 4, 5}));
  EXPECT_EQ(run_rows("txq.depth.b32 %r20, [%rd1];", volume, {Row{}})[0][0], 5u);
}

// An H200's driver cannot load such code, because only texture references support these queries.
TEST_F(Textures, OnlySizesCanBeAskedOfAnObject) {
  for (const char* name : {"channel_data_type", "channel_order", "normalized_coords", "array_size", "num_mipmap_levels",
                           "num_samples", "force_unnormalized_coords", "filter_mode", "addr_mode_0", "addr_mode_2"}) {
    const std::string source = kernel(std::string("txq.") + name + ".b32 %r20, [%rd1];");
    const Module::Loaded loaded = load_ptx(std::span(&source, 1), space);
    EXPECT_EQ(loaded.code, CUDA_ERROR_NOT_FOUND) << name;
    EXPECT_NE(loaded.log.find("line 11"), std::string::npos) << loaded.log;
  }
}

TEST_F(Textures, WhatANumberNames) {
  const std::uint64_t texture = insert(numbered(Geometry::D1, {4}));
  const std::uint64_t surface = table().insert(Surface{numbered(Geometry::D1, {4})});
  const std::string ask =
      "istypep.texref %p1, %rd1; selp.u32 %r20, 1, 0, %p1; istypep.surfref %p1, %rd1; selp.u32 %r21, 1, 0, %p1;\n"
      "istypep.samplerref %p1, %rd1; selp.u32 %r22, 1, 0, %p1;";
  const auto named = [&](std::uint64_t number) {
    const Answer answer = run_rows(ask, number, {Row{}})[0];
    return 100 * answer[0] + 10 * answer[1] + answer[2];
  };
  EXPECT_EQ(named(texture), 100u);
  EXPECT_EQ(named(surface), 10u);
  EXPECT_EQ(named(0), 0u);
  EXPECT_EQ(named(~std::uint64_t{0}), 0u);
}

// ---- faults

TEST_F(Textures, AnEntryWithoutATextureReadsAsNothing) {
  const std::uint64_t texture = insert(numbered(Geometry::Linear, {4}));
  const std::uint64_t surface = table().insert(Surface{numbered(Geometry::D1, {4})});
  const std::string fetch_one = text("tex.1d.v4.f32.s32", "{%r0}];");
  EXPECT_EQ(first(fetch_one, texture, row_of(2)), 2);
  EXPECT_TRUE(table().remove_texture(texture));
  insert(numbered(Geometry::Linear, {4}));  // uses the same slot of the table
  const std::uint64_t none = insert(Image{}), never_given_out = 1000;
  for (const std::uint64_t number :
       {texture, surface, none, never_given_out, std::uint64_t{0}, std::uint64_t{0x7ee0'0000'0000}}) {
    EXPECT_EQ(first(fetch_one, number, row_of(2)), 0) << number;
    EXPECT_EQ(first(text("tld4.r.2d.v4.f32.f32", "{%f0, %f0}];"), number, row_of(2.0F)), 0) << number;
    EXPECT_EQ(run_rows("txq.width.b32 %r20, [%rd1];", number, {Row{}})[0][0], 0u) << number;
  }
}

TEST_F(Textures, ANumberBeyondTheTableIsAFault) {
  const std::uint64_t texture = insert(numbered(Geometry::Linear, {4}));
  const std::string fetch_one = text("tex.1d.v4.f32.s32", "{%r0}];");
  for (const std::uint64_t number : {texture + 1024, std::uint64_t{0x12345}, ~std::uint64_t{0}}) {
    for (const std::string& line : {fetch_one, std::string("txq.width.b32 %r20, [%rd1];")}) {
      const Fault fault = fault_of(line, number, {row_of(0)});
      EXPECT_EQ(fault.code, unknown_object_code) << number;
      EXPECT_NE(fault.what.find("number " + std::to_string(number)), std::string::npos) << fault.what;
    }
  }
}

TEST_F(Textures, LanesMayNameDifferentObjects) {
  const std::uint64_t one = insert(floats_of(Geometry::Linear, {1}, {1}));
  const std::uint64_t two = insert(floats_of(Geometry::Linear, {1}, {2}));
  std::vector<Row> rows;
  for (unsigned k = 0; k < 32; ++k) rows.push_back({static_cast<std::uint32_t>(k % 2 == 0 ? one : two), 0});
  const std::string line = "tex.1d.v4.f32.s32 {%r20, %r21, %r22, %r23}, [%rd10, {%r4}];";
  const auto answers = run_rows(line, 0, rows);
  for (std::size_t k = 0; k < 32; ++k) EXPECT_EQ(as_float(answers[k][0]), k % 2 == 0 ? 1 : 2);
  rows[7] = row_of(9999);
  const Fault fault = fault_of(line, 0, rows);
  EXPECT_EQ(fault.code, unknown_object_code);
  EXPECT_NE(fault.what.find("thread (7,0,0)"), std::string::npos) << fault.what;
}

// An H200's driver accepts a texture that is longer than its memory. A read past the end of the memory is a fault.
TEST_F(Textures, MemoryOfTheProgramIsHeldAgainstItsAllocations) {
  constexpr std::int32_t texels = 1 << 14;
  constexpr std::size_t bytes = texels * sizeof(float);
  Image image;
  image.geometry = Geometry::Linear;
  image.format = one_float;
  const Address memory = space.allocate(bytes);
  image.levels = {{reinterpret_cast<std::byte*>(memory), 1U << 14, 1, 1, bytes, bytes}};
  reinterpret_cast<float*>(memory)[texels - 1] = 7;
  const std::uint64_t good = insert(image);
  image.levels[0].width = 100U << 14;
  const std::uint64_t longer = insert(image);
  const std::string line = text("tex.1d.v4.f32.s32", "{%r0}];");
  EXPECT_EQ(first(line, good, row_of(texels - 1)), 7);
  EXPECT_EQ(first(line, good, row_of(texels)), 0);
  EXPECT_EQ(first(line, longer, row_of(texels - 1)), 7);
  EXPECT_EQ(first(line, longer, row_of(100 * texels)), 0) << "outside of the texture, nothing is read";
  const Fault beyond = fault_of(line, longer, {row_of(0), row_of(50 * texels)});
  EXPECT_EQ(beyond.code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_NE(beyond.what.find("thread (1,0,0): a read of texture object " + std::to_string(longer)), std::string::npos)
      << beyond.what;
  EXPECT_TRUE(space.free(memory));
  // the kernel's own memory may have replaced the start of the freed memory
  for (const std::uint64_t object : {good, longer}) {
    EXPECT_EQ(fault_of(line, object, {row_of(texels - 1)}).code, CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(run_rows("txq.width.b32 %r20, [%rd1];", object, {Row{}})[0][0], object == good ? 1U << 14 : 100U << 14)
        << "a size needs no memory";
  }
}

// Each texel that an instruction reads must lie in the memory, for every variant of the instruction.
TEST_F(Textures, RowsMayEndBeyondTheirMemory) {
  Image image;
  image.geometry = Geometry::D2;
  image.format = one_float;
  const Address memory = space.allocate(4096);
  image.levels = {{reinterpret_cast<std::byte*>(memory), 16, 100, 1, 512, 51200}};  // only 8 rows have memory
  for (unsigned y = 0; y < 8; ++y) reinterpret_cast<float*>(memory)[128 * y] = static_cast<float>(y);
  const std::uint64_t point = insert(image), linear = insert(image, linear_mode);
  const std::pair<std::string, std::uint64_t> reads[] = {{text("tex.2d.v4.f32.s32", "{%r4, %r0}];"), point},
                                                         {text("tex.2d.v4.f32.f32", "{%f4, %f1}];"), point},
                                                         {text("tex.2d.v4.f32.f32", "{%f4, %f1}];"), linear},
                                                         {text("tex.level.2d.v4.f32.f32", "{%f4, %f1}], %f4;"), linear},
                                                         {text("tld4.r.2d.v4.f32.f32", "{%f4, %f1}];"), point}};
  for (const auto& [line, object] : reads) {
    const bool is_gather = line.starts_with("tld4");
    EXPECT_EQ(first(line, object, row_of(7, is_gather ? 7.0F : 7.5F)), 7) << line;
    EXPECT_EQ(fault_of(line, object, {row_of(8, 8.0F)}).code, CUDA_ERROR_ILLEGAL_ADDRESS) << line;
  }
}

// If the geometry of the instruction differs from the texture's, reads must stay within the texture's memory.
TEST_F(Textures, AnotherGeometryStaysInside) {
  const std::string lines[] = {text("tex.1d.v4.f32.s32", "{%r0}];"),
                               text("tex.3d.v4.f32.f32", "{%f4, %f4, %f4, %f4}];"),
                               text("tex.a2d.v4.f32.f32", "{%r0, %f4, %f4, %f4}];"),
                               text("tex.acube.v4.f32.f32", "{%r0, %f4, %f4, %f4}];"),
                               text("tex.cube.v4.f32.f32", "{%f4, %f4, %f4, %f4}];"),
                               text("tld4.r.cube.v4.f32.f32", "{%f4, %f4, %f4, %f4}];")};
  for (const Geometry geometry : {Geometry::Linear, Geometry::D1, Geometry::D2, Geometry::D3, Geometry::D1Layered,
                                  Geometry::D2Layered, Geometry::Cube, Geometry::CubeLayered}) {
    Texture texture = texture_of(numbered(geometry, {2, 2, 7}), linear_mode, true);
    texture.sampler.seamless_cube = true;
    const std::uint64_t object = table().insert(texture);
    for (const std::string& line : lines) {
      for (const float value : colors(line, object, row_of(1000, 0, 0, 0, 1e9F))) {
        EXPECT_TRUE(value >= 0 && value <= 621) << line << ": " << value;
      }
    }
  }
}

TEST_F(Textures, ObjectsComeAndGoWhileKernelsRun) {
  const std::uint64_t object = insert(numbered(Geometry::Linear, {64}));
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) {
      const std::uint64_t number = insert(floats_of(Geometry::D1, {4}, {1, 2, 3, 4}));
      EXPECT_TRUE(table().remove_texture(number));
    }
  });
  const auto module = load(kernel("mov.u32 %r31, 0;\nAGAIN:\n" + text("tex.1d.v4.f32.s32", "{%r0}];") +
                                  " add.u32 %r31, %r31, 1; setp.lt.u32 %p1, %r31, 100; @%p1 bra AGAIN;"));
  ASSERT_TRUE(module);
  for (int k = 0; k < 20; ++k) {
    Answer* const out = room<Answer>(32);
    const Fault fault = run(*module, "k", {20}, {32}, 0, out, upload(std::vector<Row>(32, row_of(5))), object);
    ASSERT_FALSE(fault) << fault.what;
    EXPECT_EQ(as_float(out[31][0]), 5);
  }
  done = true;
  other.join();
}

TEST_F(Textures, NothingIsKeptAfterAKernel) {
  Texture texture = texture_of(floats_of(Geometry::Linear, {1}, {3}));
  const std::weak_ptr<void> memory = texture.image.keeps;
  const std::uint64_t object = table().insert(std::move(texture));
  EXPECT_EQ(first(text("tex.1d.v4.f32.s32", "{%r0}];"), object, row_of(0)), 3);
  EXPECT_TRUE(table().remove_texture(object));
  EXPECT_TRUE(memory.expired());
}

TEST_F(Textures, WhatIsNotServedIsRefusedWithItsLine) {
  for (const std::string& line : {text("tex.2d.v4.f32.f32", "{%f0, %f1}], %f2;"),         // a depth to compare with
                                  text("tex.2d.v4.f32.f32", "%rd4, {%f0, %f1}];"),        // a separate sampler
                                  text("tex.2dms.v4.f32.s32", "{%r0, %r1, %r2, %r2}];"),  // several samples per texel
                                  text("tex.cube.v4.f32.s32", "{%r0, %r1, %r2, %r2}];"),
                                  text("tex.2d.v4.f32.f32", "{%f0}];"),
                                  text("tex.2d.v4.f32.f32", "%f0];"),
                                  text("tex.3d.v4.f32.f32", "{%f0, %f1, %f2}];"),
                                  text("tex.a2d.v4.f32.f32", "%r0];"),
                                  text("tex.2d.v4.b32.f32", "{%f0, %f1}];"),
                                  text("tex.2d.v4.f32.u32", "{%r0, %r1}];"),
                                  text("tex.2d.v2.f32.f32", "{%f0, %f1}];"),
                                  text("tex.2d.1d.v4.f32.f32", "{%f0, %f1}];"),
                                  text("tex.v4.f32.f32", "{%f0, %f1}];"),
                                  text("tex.level.2d.v4.f32.f32", "{%f0, %f1}];"),
                                  text("tex.grad.2d.v4.f32.f32", "{%f0, %f1}], %f0, %f1;"),
                                  text("tex.cube.v4.f32.f32", "{%f0, %f1, %f2, %f2}], {1, 2, 3, 4};"),
                                  text("tld4.2d.v4.f32.f32", "{%f0, %f1}];"),
                                  text("tld4.r.g.2d.v4.f32.f32", "{%f0, %f1}];"),
                                  text("tld4.r.1d.v4.f32.f32", "{%f0}];"),
                                  text("tld4.r.2d.v4.f32.s32", "{%r0, %r1}];"),
                                  std::string("tld4.r.2d.v4.f16.f32 {%h0, %h1, %h2, %h3}, [%rd1, {%f0, %f1}];"),
                                  std::string("tex.2d.v4.f32.f32 {%r20, %r21}, [%rd1, {%f0, %f1}];"),
                                  std::string("tex.2d.v4.f32.f32 {%r20, %r21, %r22, %rd4}, [%rd1, {%f0, %f1}];"),
                                  std::string("tex.2d.v4.f32.f32 {%r20, %r21, %r22, %r23}, [%r1, {%f0, %f1}];"),
                                  std::string("tex.2d.v4.f32.f32 {%r20, %r21, %r22, %r23}, [%rd1+8, {%f0, %f1}];"),
                                  std::string("tex.2d.v4.f32.f32 {%r20, %r21, %r22, %r23}, [%rd1];"),
                                  std::string("tex.2d.v4.f32.f32 {%r20, %r21, %r22, %r23}, [name, {%f0, %f1}];"),
                                  std::string("txq.b32 %r20, [%rd1];"),
                                  std::string("txq.width.u32 %r20, [%rd1];"),
                                  std::string("txq.width.b32 %rd4, [%rd1];"),
                                  std::string("txq.level.array_size.b32 %r20, [%rd1], %r0;"),
                                  std::string("txq.level.width.b32 %r20, [%rd1];"),
                                  std::string("istypep.texref %p1, %r1;"),
                                  std::string("istypep %p1, %rd1;")}) {
    EXPECT_FALSE(refused(line).empty()) << line;
  }
}

// ---- references

Module::Loaded declared(const std::string& declaration, AddressSpace& space) {
  const std::string source = ".version 9.0\n.target sm_90\n.address_size 64\n" + declaration + "\n";
  return load_ptx(std::span(&source, 1), space);
}

TEST_F(Textures, AReferenceIsTheNumberInItsVariable) {
  const std::string name = "picture";
  std::string source = kernel("tex.1d.v4.f32.s32 {%r20, %r21, %r22, %r23}, [picture, {%r0}];");
  source.insert(source.find(".visible"), ".global .texref picture;\n");
  const auto module = load(source);
  ASSERT_TRUE(module);
  const Global* variable = module->texture_reference(name);
  ASSERT_NE(variable, nullptr);
  EXPECT_EQ(module->surface_reference(name), nullptr);
  EXPECT_EQ(module->global(name), nullptr);
  const auto first_channel = [&](std::uint64_t number, Fault& fault) {
    std::memcpy(reinterpret_cast<void*>(variable->address), &number, sizeof number);
    Answer* const out = room<Answer>(32);
    fault = run(*module, "k", {1}, {1}, 0, out, upload(std::vector<Row>(1, row_of(1))), std::uint64_t{0});
    return as_float(out[0][0]);
  };
  Fault fault;
  EXPECT_EQ(first_channel(insert(floats_of(Geometry::Linear, {2}, {3, 4})), fault), 4);
  EXPECT_EQ(first_channel(insert(floats_of(Geometry::Linear, {2}, {5, 6})), fault), 6);
  EXPECT_EQ(first_channel(0, fault), 0) << "nothing is bound";
  EXPECT_EQ(fault.code, 0);
  first_channel(9999, fault);
  EXPECT_EQ(fault.code, unknown_object_code);
}

TEST_F(Textures, ReferencesThatAreNotServedAreRefusedByName) {
  EXPECT_EQ(declared(".global .texref picture;\n.global .surfref board;", space).code, CUDA_SUCCESS);
  for (const char* declaration :
       {".global .samplerref sampler;", ".const .texref picture;", ".shared .surfref board;"}) {
    const Module::Loaded loaded = declared(declaration, space);
    EXPECT_EQ(loaded.code, CUDA_ERROR_INVALID_PTX) << declaration;
    EXPECT_NE(loaded.log.find("line 4: "), std::string::npos) << loaded.log;
  }
}

}  // namespace
}  // namespace simgpu
