// Tests surface instructions: the accessed addresses, every variant of loads, stores and reductions, faults, and
// refused instructions.
#include "host/simgpu/texture/surface.h"

#include "host/simgpu/vm/texture.h"
#include "tests/unit/simgpu/texture_kernel.h"

namespace simgpu {
namespace {

using Kind = SurfacePlace::Kind;

// A surface whose memory the test inspects.
template <class T>
struct Sheet {
  Sheet(Geometry geometry, TexelFormat format, Size size, std::vector<T> texels)
      : surface{image_of(geometry, format, size, texels)}, channels(format.channels) {}
  T& at(std::size_t x, std::size_t y = 0, std::size_t z = 0, std::size_t channel = 0) {
    const Level& level = surface.image.levels.front();
    return reinterpret_cast<T*>(level.texels + z * level.slice_pitch + y * level.row_pitch)[x * channels + channel];
  }
  Surface surface;
  std::size_t channels;
};

Sheet<std::uint32_t> words(Geometry geometry, Size size) {
  std::vector<std::uint32_t> texels(std::size_t{size.width} * size.height * size.depth);
  for (std::size_t k = 0; k < texels.size(); ++k) texels[k] = static_cast<std::uint32_t>(100 + k);
  return {geometry, {CU_AD_FORMAT_UNSIGNED_INT32, 1}, size, texels};
}

TEST(SurfacePlaces, LieInBytesAcrossAndInRowsAndLayers) {
  Sheet<std::uint32_t> sheet = words(Geometry::D2Layered, {4, 3, 2});
  const auto find = [&](Geometry geometry, std::array<std::int32_t, 3> at, std::uint32_t layer,
                        bool formatted = false) {
    return surface_place(sheet.surface, {geometry, at, layer, formatted}, 4, Bounds::Trap);
  };
  const auto* texel = reinterpret_cast<std::byte*>(&sheet.at(3, 2, 1));
  EXPECT_EQ(find(Geometry::D2Layered, {12, 2, 9}, 1).memory, texel);
  EXPECT_EQ(find(Geometry::D2Layered, {3, 2, 9}, 1, true).memory, texel);
  EXPECT_EQ(find(Geometry::D3, {12, 2, 1}, 0).memory, texel);
  EXPECT_EQ(find(Geometry::D2, {12, 2, 9}, 9).memory, reinterpret_cast<std::byte*>(&sheet.at(3, 2, 0)));
  EXPECT_EQ(find(Geometry::D1, {12, 9, 9}, 9).memory, reinterpret_cast<std::byte*>(&sheet.at(3, 0, 0)));
  for (const auto& [at, layer] : {std::pair{std::array{16, 0, 0}, 0U},
                                  {{-4, 0, 0}, 0U},
                                  {{0, 3, 0}, 0U},
                                  {{0, -1, 0}, 0U},
                                  {{0, 0, 0}, 2U},
                                  {{0, 0, 0}, ~0U},
                                  {{INT32_MIN, 0, 0}, 0U},
                                  {{INT32_MAX - 3, 0, 0}, 0U}}) {
    EXPECT_EQ(find(Geometry::D2Layered, at, layer).kind, Kind::Trapped) << at[0] << "," << at[1] << " " << layer;
  }
  EXPECT_EQ(find(Geometry::D2Layered, {INT32_MAX, 0, 0}, 0, true).kind, Kind::Trapped);
}

TEST(SurfacePlaces, ClampTakesTheNearestAndZeroNone) {
  Sheet<std::uint32_t> sheet = words(Geometry::D2, {4, 3});
  const auto find = [&](std::int32_t x, std::int32_t y, unsigned bytes, Bounds bounds) {
    return surface_place(sheet.surface, {Geometry::D2, {x, y, 0}, 0, false}, bytes, bounds);
  };
  const auto place = [&](std::size_t x, std::size_t y) { return reinterpret_cast<std::byte*>(&sheet.at(x, y)); };
  EXPECT_EQ(find(-4, 1, 4, Bounds::Clamp).memory, place(0, 1));
  EXPECT_EQ(find(400, -1, 4, Bounds::Clamp).memory, place(3, 0));
  EXPECT_EQ(find(400, 9, 8, Bounds::Clamp).memory, place(2, 2));
  EXPECT_EQ(find(0, 0, 32, Bounds::Clamp).kind, Kind::Trapped) << "wider than the surface";
  EXPECT_EQ(find(16, 0, 4, Bounds::Zero).kind, Kind::Nothing);
  EXPECT_EQ(find(8, 0, 8, Bounds::Zero).kind, Kind::Inside);
  EXPECT_EQ(find(2, 0, 4, Bounds::Zero).kind, Kind::Misaligned);
  EXPECT_EQ(find(4, 0, 8, Bounds::Clamp).kind, Kind::Misaligned);
  EXPECT_EQ(find(402, 0, 4, Bounds::Trap).kind, Kind::Misaligned);
}

// Layers are unsigned, so -1 is a very high layer.
TEST(SurfacePlaces, LayersAreHeldToTheLast) {
  Sheet<std::uint32_t> sheet = words(Geometry::D2Layered, {4, 3, 2});
  const SurfacePlace place =
      surface_place(sheet.surface, {Geometry::D2Layered, {0, 0, 0}, ~0U, false}, 4, Bounds::Clamp);
  EXPECT_EQ(place.memory, reinterpret_cast<std::byte*>(&sheet.at(0, 0, 1)));
}

class Surfaces : public TextureKernel {
 protected:
  std::uint32_t loaded(const std::string& text, std::uint64_t object, const Row& row) {
    return run_rows(text, object, {row}).at(0)[0];
  }
};

TEST_F(Surfaces, LoadsOfEachGeometry) {
  const auto insert = [&](Geometry geometry, Size size) { return table().insert(words(geometry, size).surface); };
  EXPECT_EQ(loaded("suld.b.1d.b32.trap {%r20}, [%rd1, {%r0}];", insert(Geometry::D1, {4}), row_of(8)), 102u);
  EXPECT_EQ(loaded("suld.b.1d.b32.trap %r20, [%rd1, %r0];", insert(Geometry::D1, {4}), row_of(8)), 102u);
  EXPECT_EQ(loaded("suld.b.2d.b32.trap {%r20}, [%rd1, {%r0, %r1}];", insert(Geometry::D2, {4, 4}), row_of(8, 1)), 106u);
  EXPECT_EQ(loaded("suld.b.3d.b32.trap {%r20}, [%rd1, {%r0, %r1, %r2, %r2}];", insert(Geometry::D3, {4, 4, 4}),
                   row_of(8, 1, 2)),
            138u);
  EXPECT_EQ(
      loaded("suld.b.a1d.b32.trap {%r20}, [%rd1, {%r1, %r0}];", insert(Geometry::D1Layered, {4, 1, 3}), row_of(8, 2)),
      110u);
  EXPECT_EQ(loaded("suld.b.a2d.b32.trap {%r20}, [%rd1, {%r2, %r0, %r1, %r1}];", insert(Geometry::D2Layered, {4, 4, 4}),
                   row_of(8, 1, 2)),
            138u);
  // The faces of a cube are layers.
  EXPECT_EQ(loaded("suld.b.a2d.b32.trap {%r20}, [%rd1, {%r2, %r0, %r1, %r1}];", insert(Geometry::Cube, {2, 2, 6}),
                   row_of(4, 1, 5)),
            123u);
}

TEST_F(Surfaces, LoadsOfEachSize) {
  Sheet<std::uint8_t> sheet(Geometry::D1, {CU_AD_FORMAT_UNSIGNED_INT8, 4}, {8}, std::vector<std::uint8_t>(32));
  for (std::size_t k = 0; k < 32; ++k) sheet.at(0, 0, 0, k) = static_cast<std::uint8_t>(0xe0 + k);
  const std::uint64_t object = table().insert(sheet.surface);
  const auto answer = [&](const std::string& text) { return run_rows(text, object, {row_of(16)})[0]; };
  const std::string at = ", [%rd1, {%r0}];";
  const std::string widen =
      " cvt.u32.u16 %r20, %h0; cvt.u32.u16 %r21, %h1; cvt.u32.u16 %r22, %h2; cvt.u32.u16 %r23, %h3;";
  const std::string zero = "mov.u16 %h0, 0; mov.u16 %h1, 0; mov.u16 %h2, 0; mov.u16 %h3, 0; ";
  EXPECT_EQ(answer(zero + "suld.b.1d.b8.trap {%h0}" + at + widen), (Answer{0xf0}));
  EXPECT_EQ(answer(zero + "suld.b.1d.v2.b8.trap {%h0, %h1}" + at + widen), (Answer{0xf0, 0xf1}));
  EXPECT_EQ(answer(zero + "suld.b.1d.v4.b8.trap {%h0, %h1, %h2, %h3}" + at + widen), (Answer{0xf0, 0xf1, 0xf2, 0xf3}));
  EXPECT_EQ(answer(zero + "suld.b.1d.v4.b16.trap {%h0, %h1, %h2, %h3}" + at + widen),
            (Answer{0xf1f0, 0xf3f2, 0xf5f4, 0xf7f6}));
  EXPECT_EQ(answer("suld.b.1d.b8.trap {%r20}" + at), (Answer{0xf0}));
  EXPECT_EQ(answer("suld.b.1d.v2.b32.trap {%r20, %r21}" + at), (Answer{0xf3f2'f1f0, 0xf7f6'f5f4}));
  EXPECT_EQ(answer("suld.b.1d.v4.b32.trap {%r20, %r21, _, %r23}" + at),
            (Answer{0xf3f2'f1f0, 0xf7f6'f5f4, 0, 0xfffe'fdfc}));
  EXPECT_EQ(answer("suld.b.1d.b64.trap {%rd4}" + at + " mov.b64 {%r20, %r21}, %rd4;"),
            (Answer{0xf3f2'f1f0, 0xf7f6'f5f4}));
  EXPECT_EQ(answer("suld.b.1d.cg.v2.b64.trap {%rd4, %rd5}" + at + " mov.b64 {%r20, %r21}, %rd5;"),
            (Answer{0xfbfa'f9f8, 0xfffe'fdfc}));
}

TEST_F(Surfaces, StoresOfEachSize) {
  Sheet<std::uint32_t> sheet(Geometry::D1, {CU_AD_FORMAT_UNSIGNED_INT32, 4}, {2},
                             std::vector<std::uint32_t>(8, 0x1111'1111));
  const std::uint64_t object = table().insert(sheet.surface);
  const auto stored = [&](const std::string& text) {
    for (std::size_t k = 0; k < 8; ++k) sheet.at(0, 0, 0, k) = 0x1111'1111;
    run_rows(text, object, {row_of(0x2222'2222, 0x3333'3333, 0x4444'4444, 0x5555'5555, 16)});
    return std::array{sheet.at(1, 0, 0, 0), sheet.at(1, 0, 0, 1), sheet.at(1, 0, 0, 2), sheet.at(1, 0, 0, 3)};
  };
  const std::string at = " [%rd1, {%r4}], ";
  const std::uint32_t one = 0x1111'1111;
  EXPECT_EQ(stored("mov.u16 %h0, 0x9988; sust.b.1d.b8.trap" + at + "{%h0};"),
            (std::array{0x1111'1188U, one, one, one}));
  EXPECT_EQ(stored("mov.u16 %h0, 0x9988; sust.b.1d.v4.b8.trap" + at + "{%h0, %h0, %h0, %h0};"),
            (std::array{0x8888'8888U, one, one, one}));
  EXPECT_EQ(stored("mov.u16 %h0, 0x9988; sust.b.1d.v2.b16.trap" + at + "{%h0, %h0};"),
            (std::array{0x9988'9988U, one, one, one}));
  EXPECT_EQ(stored("sust.b.1d.b32.trap" + at + "{%r0};"), (std::array{0x2222'2222U, one, one, one}));
  EXPECT_EQ(stored("sust.b.1d.wb.b32.trap" + at + "{7};"), (std::array{7U, one, one, one}));
  EXPECT_EQ(stored("sust.b.1d.v4.b32.trap" + at + "{%r0, %r1, %r2, %r3};"),
            (std::array{0x2222'2222U, 0x3333'3333U, 0x4444'4444U, 0x5555'5555U}));
  EXPECT_EQ(stored("sust.b.1d.b64.trap" + at + "{%rd10};"), (std::array{0x2222'2222U, 0x3333'3333U, one, one}));
  EXPECT_EQ(stored("sust.b.1d.v2.b64.trap" + at + "{%rd11, %rd10};"),
            (std::array{0x4444'4444U, 0x5555'5555U, 0x2222'2222U, 0x3333'3333U}));
}

TEST_F(Surfaces, StoresOfEachGeometry) {
  const auto store = [&](Sheet<std::uint32_t>& sheet, const std::string& text, const Row& row) {
    run_rows(text + ", {%r9};", table().insert(sheet.surface), {row});
  };
  Row row = row_of(8, 1, 2);
  row[9] = 7;
  Sheet<std::uint32_t> plane = words(Geometry::D2, {4, 4});
  store(plane, "sust.b.2d.b32.trap [%rd1, {%r0, %r1}]", row);
  EXPECT_EQ(plane.at(2, 1), 7u);
  Sheet<std::uint32_t> volume = words(Geometry::D3, {4, 4, 4});
  store(volume, "sust.b.3d.b32.trap [%rd1, {%r0, %r1, %r2, %r2}]", row);
  EXPECT_EQ(volume.at(2, 1, 2), 7u);
  Sheet<std::uint32_t> rows = words(Geometry::D1Layered, {4, 1, 4});
  store(rows, "sust.b.a1d.b32.trap [%rd1, {%r2, %r0}]", row);
  EXPECT_EQ(rows.at(2, 0, 2), 7u);
  Sheet<std::uint32_t> layers = words(Geometry::D2Layered, {4, 4, 4});
  store(layers, "sust.b.a2d.b32.trap [%rd1, {%r2, %r0, %r1, %r1}]", row);
  EXPECT_EQ(layers.at(2, 1, 2), 7u);
}

TEST_F(Surfaces, OutsideOfThem) {
  Sheet<std::uint32_t> sheet = words(Geometry::D1, {4});
  const std::uint64_t object = table().insert(sheet.surface);
  for (const int x : {-4, 16, 1 << 30}) {
    const Fault fault = fault_of("suld.b.1d.b32.trap {%r20}, [%rd1, {%r0}];", object, {row_of(x)});
    EXPECT_EQ(fault.code, surface_trap_code) << x;
    EXPECT_EQ(fault_of("sust.b.1d.b32.trap [%rd1, {%r0}], {%r0};", object, {row_of(x)}).code, surface_trap_code);
    EXPECT_EQ(fault_of("sured.b.add.1d.u32.trap [%rd1, {%r0}], %r0;", object, {row_of(x)}).code, surface_trap_code);
    const std::string before = "mov.u32 %r20, 9; mov.u32 %r21, 9; ";
    EXPECT_EQ(loaded(before + "suld.b.1d.b32.zero {%r20}, [%rd1, {%r0}];", object, row_of(x)), 0u);
    EXPECT_EQ(loaded("suld.b.1d.b32.clamp {%r20}, [%rd1, {%r0}];", object, row_of(x)), x < 0 ? 100u : 103u);
    run_rows("sust.b.1d.b32.zero [%rd1, {%r0}], {%r0}; sured.b.add.1d.u32.zero [%rd1, {%r0}], 1;", object, {row_of(x)});
  }
  EXPECT_EQ(sheet.at(0), 100u);
  EXPECT_EQ(sheet.at(3), 103u);
  run_rows("sust.b.1d.b32.clamp [%rd1, {%r0}], {%r1};", object, {row_of(400, 5)});
  EXPECT_EQ(sheet.at(3), 5u);
  EXPECT_EQ(fault_of("suld.b.1d.b32.zero {%r20}, [%rd1, {%r0}];", object, {row_of(2)}).code,
            CUDA_ERROR_MISALIGNED_ADDRESS);
}

TEST_F(Surfaces, FormattedStoresConvert) {
  Sheet<std::int8_t> small(Geometry::D2, {CU_AD_FORMAT_SIGNED_INT8, 4}, {4, 2}, std::vector<std::int8_t>(32, 9));
  run_rows("sust.p.2d.v4.b32.trap [%rd1, {%r0, %r1}], {%r2, %r3, %r4, %r5};", table().insert(small.surface),
           {row_of(3, 1, 300, -300, 5, -5)});
  EXPECT_EQ((std::array{small.at(3, 1, 0, 0), small.at(3, 1, 0, 1), small.at(3, 1, 0, 2), small.at(3, 1, 0, 3)}),
            (std::array<std::int8_t, 4>{127, -128, 5, -5}));
  EXPECT_EQ(small.at(2, 1, 0, 3), 9);
  Sheet<std::uint16_t> half(Geometry::D1, {CU_AD_FORMAT_HALF, 2}, {4}, std::vector<std::uint16_t>(8));
  run_rows("sust.p.1d.v4.b32.clamp [%rd1, {%r0}], {%r1, %r2, %r3, %r4};", table().insert(half.surface),
           {row_of(99, 1.0F, -2.0F, 3.0F, 4.0F)});
  EXPECT_EQ(half.at(3, 0, 0, 0), 0x3c00u);
  EXPECT_EQ(half.at(3, 0, 0, 1), 0xc000u);
  run_rows("sust.p.1d.b32.trap [%rd1, {%r0}], {%r1};", table().insert(half.surface), {row_of(1, 0.5F)});
  EXPECT_EQ(half.at(1, 0, 0, 0), 0x3800u);
}

TEST_F(Surfaces, ReductionsOfEachKind) {
  struct Case {
    const char* opcode;
    std::uint32_t old, value, wanted;
  };
  const Case cases[] = {{"add.1d.u32", 5, 7, 12},
                        {"add.1d.s32", 5, word(-7), word(-2)},
                        {"min.1d.u32", 5, word(-7), 5},
                        {"min.1d.s32", 5, word(-7), word(-7)},
                        {"max.1d.u32", 5, word(-7), word(-7)},
                        {"max.1d.s32", 5, word(-7), 5},
                        {"and.1d.b32", 12, 10, 8},
                        {"or.1d.b32", 12, 10, 14}};
  for (const Case& one : cases) {
    Sheet<std::uint32_t> sheet = words(Geometry::D1, {4});
    sheet.at(2) = one.old;
    run_rows(std::string("sured.b.") + one.opcode + ".trap [%rd1, {%r0}], %r1;", table().insert(sheet.surface),
             {{8, one.value}});
    EXPECT_EQ(sheet.at(2), one.wanted) << one.opcode;
  }
  // A formatted reduction uses coordinates in texels and the sign of the surface's format.
  for (const bool is_signed : {false, true}) {
    Sheet<std::uint32_t> sheet = words(Geometry::D2, {4, 4});
    sheet.surface.image.format.format = is_signed ? CU_AD_FORMAT_SIGNED_INT32 : CU_AD_FORMAT_UNSIGNED_INT32;
    run_rows("sured.p.min.2d.b32.trap [%rd1, {%r0, %r1}], %r2;", table().insert(sheet.surface), {row_of(3, 1, -1)});
    EXPECT_EQ(sheet.at(3, 1), is_signed ? word(-1) : 107u);
  }
  Sheet<std::uint32_t> wide(Geometry::D3, {CU_AD_FORMAT_UNSIGNED_INT32, 2}, {2, 2, 2},
                            std::vector<std::uint32_t>(16, ~0U));
  run_rows("mov.u64 %rd4, 2; sured.b.add.3d.u64.trap [%rd1, {%r0, %r1, %r2, %r2}], %rd4;", table().insert(wide.surface),
           {row_of(8, 1, 1)});
  EXPECT_EQ(wide.at(1, 1, 1, 0), 1u);
  EXPECT_EQ(wide.at(1, 1, 1, 1), 0u);
  run_rows("mov.u64 %rd4, 2; sured.b.min.3d.s64.trap [%rd1, {%r0, %r1, %r2, %r2}], %rd4;", table().insert(wide.surface),
           {row_of(0, 1, 1)});
  EXPECT_EQ(wide.at(0, 1, 1, 1), ~0U) << "-1 is less than 2";
  run_rows("mov.u64 %rd4, 2; sured.b.min.3d.u64.trap [%rd1, {%r0, %r1, %r2, %r2}], %rd4;", table().insert(wide.surface),
           {row_of(0, 1, 1)});
  EXPECT_EQ(wide.at(0, 1, 1, 0), 2u);
}

TEST_F(Surfaces, ManyBlocksMeetAtOneTexel) {
  Sheet<std::uint32_t> sheet = words(Geometry::D1, {1});
  sheet.at(0) = 0;
  const std::uint64_t object = table().insert(sheet.surface);
  const auto module = load(kernel("sured.b.add.1d.u32.trap [%rd1, {0}], 1;"));
  ASSERT_TRUE(module);
  const Fault fault = run(*module, "k", {50}, {64}, 0, room<Answer>(64), upload(std::vector<Row>(64)), object);
  ASSERT_FALSE(fault) << fault.what;
  EXPECT_EQ(sheet.at(0), 50u * 64);
}

TEST_F(Surfaces, Queries) {
  const std::uint64_t volume = table().insert(
      Surface{image_of(Geometry::D3, {CU_AD_FORMAT_HALF, 2}, {4, 2, 3}, std::vector<std::uint16_t>(48))});
  const std::pair<const char*, std::uint32_t> wanted[] = {{"width", 4}, {"height", 2}, {"depth", 3}};
  for (const auto& [name, value] : wanted) {
    EXPECT_EQ(loaded(std::string("suq.") + name + ".b32 %r20, [%rd1];", volume, Row{}), value) << name;
  }
  const std::uint64_t layers = table().insert(words(Geometry::CubeLayered, {2, 2, 12}).surface);
  EXPECT_EQ(loaded("suq.depth.b32 %r20, [%rd1];", layers, Row{}), 2u);
}

// An H200's driver cannot load such code, because only surface references support these queries.
TEST_F(Surfaces, OnlySizesCanBeAskedOfAnObject) {
  for (const char* name : {"channel_data_type", "channel_order", "array_size", "memory_layout"}) {
    const std::string source = kernel(std::string("suq.") + name + ".b32 %r20, [%rd1];");
    const Module::Loaded loaded = load_ptx(std::span(&source, 1), space);
    EXPECT_EQ(loaded.code, CUDA_ERROR_NOT_SUPPORTED) << name;
  }
}

const char* const accesses[] = {"suld.b.1d.b32.zero {%r20}, [%rd1, {%r0}];",
                                "sust.b.1d.b32.clamp [%rd1, {%r0}], {%r0};",
                                "sured.b.add.1d.u32.zero [%rd1, {%r0}], 1;", "suq.width.b32 %r20, [%rd1];"};

TEST_F(Surfaces, AnEntryWithoutASurfaceIsOneOfNothing) {
  const std::uint64_t texture = table().insert(texture_of(floats_of(Geometry::D1, {4}, {1, 2, 3, 4})));
  const std::uint64_t gone = table().insert(words(Geometry::D1, {4}).surface);
  EXPECT_TRUE(table().remove_surface(gone));
  for (const std::uint64_t number : {texture, gone, std::uint64_t{0}}) {
    for (const char* line : accesses) EXPECT_EQ(loaded(line, number, Row{}), 0u) << line;
    EXPECT_EQ(fault_of("suld.b.1d.b32.trap {%r20}, [%rd1, {%r0}];", number, {Row{}}).code, surface_trap_code);
  }
}

TEST_F(Surfaces, ANumberBeyondTheTableIsAFault) {
  for (const char* line : accesses)
    EXPECT_EQ(fault_of(line, ~std::uint64_t{0}, {Row{}}).code, unknown_object_code) << line;
}

TEST_F(Surfaces, WhatIsNotServedIsRefusedWithItsLine) {
  for (const char* line : {"suld.b.1d.b32 {%r20}, [%rd1, {%r0}];",
                           "suld.b.1d.b32.trap.zero {%r20}, [%rd1, {%r0}];",
                           "suld.p.1d.b32.trap {%r20}, [%rd1, {%r0}];",
                           "suld.b.1d.u32.trap {%r20}, [%rd1, {%r0}];",
                           "suld.b.1d.v4.b64.trap {%rd4, %rd5, %rd6, %rd7}, [%rd1, {%r0}];",
                           "suld.b.1d.v2.b32.trap {%r20}, [%rd1, {%r0}];",
                           "suld.b.1d.v2.b32.trap {%r20, %rd4}, [%rd1, {%r0}];",
                           "suld.b.1d.b32.trap {%h0}, [%rd1, {%r0}];",
                           "suld.b.2d.b32.trap {%r20}, [%rd1, {%r0}];",
                           "suld.b.1d.b32.trap {%r20}, [%rd1, {%f0, %f0, %f0}];",
                           "suld.b.cube.b32.trap {%r20}, [%rd1, {%r0, %r0, %r0, %r0}];",
                           "suld.b.1d.b32.trap {%r20}, [%r1, {%r0}];",
                           "sust.b.1d.b32 [%rd1, {%r0}], {%r0};",
                           "sust.p.1d.b64.trap [%rd1, {%r0}], {%rd4};",
                           "sust.b.p.1d.b32.trap [%rd1, {%r0}], {%r0};",
                           "sured.b.1d.u32.trap [%rd1, {%r0}], %r1;",
                           "sured.b.add.min.1d.u32.trap [%rd1, {%r0}], %r1;",
                           "sured.b.add.1d.b32.trap [%rd1, {%r0}], %r1;",
                           "sured.b.or.1d.b64.trap [%rd1, {%r0}], %rd4;",
                           "sured.b.and.1d.u32.trap [%rd1, {%r0}], %r1;",
                           "sured.b.xor.1d.b32.trap [%rd1, {%r0}], %r1;",
                           "sured.p.add.1d.u32.trap [%rd1, {%r0}], %r1;",
                           "sured.p.or.1d.b64.trap [%rd1, {%r0}], %rd4;",
                           "sured.b.add.a1d.u32.trap [%rd1, {%r0, %r0}], %r1;",
                           "sured.b.add.1d.u32.trap [%rd1, {%r0}], {%r1};",
                           "suq.num_mipmap_levels.b32 %r20, [%rd1];",
                           "suq.normalized_coords.b32 %r20, [%rd1];"}) {
    EXPECT_FALSE(refused(line).empty()) << line;
  }
}

}  // namespace
}  // namespace simgpu
