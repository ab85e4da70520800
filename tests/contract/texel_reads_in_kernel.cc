// Cases for a kernel's reads of texels of each format, of texels outside arrays, and through invalid handles. These
// cases use positions as coordinates, because one-dimensional reads by texel number exist only for linear memory
// (texture_in_kernel.cc).
#include "tests/contract/arrays.h"
#include "tests/contract/kernel_textures.h"

namespace contract {
namespace {

constexpr CUfilter_mode point = CU_TR_FILTER_MODE_POINT;
constexpr CUfilter_mode linear = CU_TR_FILTER_MODE_LINEAR;
constexpr CUaddress_mode clamp = CU_TR_ADDRESS_MODE_CLAMP;
constexpr CUaddress_mode border = CU_TR_ADDRESS_MODE_BORDER;
constexpr CUaddress_mode modes[] = {CU_TR_ADDRESS_MODE_WRAP, clamp, CU_TR_ADDRESS_MODE_MIRROR, border};

std::string words(const std::string& opcode, const std::string& operands) {
  return opcode + " {%r20, %r21, %r22, %r23}, [%rd1, " + operands + ";";
}
const std::string along = words("tex.1d.v4.f32.f32", "{%f0}]");
const std::string numbered = words("tex.1d.v4.f32.s32", "{%r0}]");
const std::string numbered_across = words("tex.2d.v4.f32.s32", "{%r0, %r1}]");

std::string bits(const char* what, float x) { return std::string(what) + " at " + std::to_string(x); }

// Shows the first texel of a row.
void show_texel(const std::string& what, CUarray array, unsigned flags = 0) {
  show_words(what, along, texture_of(array, sampling_of(point, clamp, flags)), row_of(0.5F), 4);
}

GROUP(texel_reads_channels, InContext) {
  const unsigned char bytes[] = {255, 51, 0, 1};
  const float floats[] = {2, 3, 4, 5};
  const unsigned words[] = {6, 7, 8, 9};
  for (const unsigned count : {1U, 2U, 4U}) {
    const std::string name = std::to_string(count) + " channels";
    const CUarray small = array_of({CU_AD_FORMAT_UNSIGNED_INT8, count}, bytes);
    show_texel(name + " of floats", array_of({CU_AD_FORMAT_FLOAT, count}, floats));
    show_texel(name + " of words", array_of({CU_AD_FORMAT_UNSIGNED_INT32, count}, words));
    show_texel(name + " of bytes", small);
    show_texel(name + " of bytes as integers", small, CU_TRSF_READ_AS_INTEGER);
  }
}

GROUP(texel_reads_fractions, InContext) {
  const signed char bytes[] = {-128, -127, 127, 1};
  const short shorts[] = {-32768, -32767, 32767, 1};
  const unsigned short halves[] = {0x3c00, 0x0001, 0x7c00, 0xc000};
  show_texel("signed bytes", array_of({CU_AD_FORMAT_SIGNED_INT8, 4}, bytes));
  show_texel("signed bytes as integers", array_of({CU_AD_FORMAT_SIGNED_INT8, 4}, bytes), CU_TRSF_READ_AS_INTEGER);
  show_texel("signed shorts", array_of({CU_AD_FORMAT_SIGNED_INT16, 4}, shorts));
  show_texel("unsigned shorts", array_of({CU_AD_FORMAT_UNSIGNED_INT16, 4}, shorts));
  show_texel("halves", array_of({CU_AD_FORMAT_HALF, 4}, halves));
}

GROUP(texel_reads_srgb, InContext) {
  constexpr unsigned char encoded[] = {0, 1, 10, 11, 100, 188, 254, 255};
  for (const unsigned char value : encoded) {
    const unsigned char bytes[] = {value, value, value, value};
    show_texel("sRGB of " + std::to_string(value), array_of({CU_AD_FORMAT_UNSIGNED_INT8, 4}, bytes), CU_TRSF_SRGB);
  }
  const unsigned short shorts[] = {0x8000, 0x8000, 0x8000, 0x8000};
  show_texel("sRGB of shorts", array_of({CU_AD_FORMAT_UNSIGNED_INT16, 4}, shorts), CU_TRSF_SRGB);
}

GROUP(texel_reads_not_numbers, InContext) {
  const unsigned odd_bits[] = {0x7fa00001, 0xffc00000};
  const unsigned long long plain = texture_of(array_of({.width = 2}, odd_bits), sampling_of(point, clamp));
  const unsigned long long filtered = texture_of(array_of({.width = 2}, odd_bits), sampling_of(linear, clamp));
  for (const float x : {0.5F, 1.5F}) {
    show_words(bits("a point", x), along, plain, row_of(x));
    show_words(bits("filtered", x), along, filtered, row_of(x));
  }
}

GROUP(texel_reads_borders, InContext) {
  auto sampling = sampling_of(point, border);
  const float given[] = {1.5F, -1.5F, 0.25F, -0.25F};
  std::memcpy(sampling.borderColor, given, sizeof given);
  const unsigned none[4] = {};
  const auto ask = [&](const char* what, CUarray_format format, unsigned flags) {
    sampling.flags = flags;
    show_words(what, along, texture_of(array_of({format, 4}, none), sampling), row_of(-1.0F), 4);
  };
  ask("of floats", CU_AD_FORMAT_FLOAT, 0);
  ask("of halves", CU_AD_FORMAT_HALF, 0);
  ask("of signed bytes", CU_AD_FORMAT_SIGNED_INT8, 0);
  ask("of shorts", CU_AD_FORMAT_UNSIGNED_INT16, 0);
  ask("of words", CU_AD_FORMAT_UNSIGNED_INT32, 0);
  ask("of signed words", CU_AD_FORMAT_SIGNED_INT32, 0);
  ask("of words as integers", CU_AD_FORMAT_UNSIGNED_INT32, CU_TRSF_READ_AS_INTEGER);
  ask("of sRGB", CU_AD_FORMAT_UNSIGNED_INT8, CU_TRSF_SRGB);
}

// Linear filtering of one-dimensional textures with a border: shows which address mode decides, and whether layered
// textures behave the same way.
GROUP(texel_reads_lines, InContext) {
  const float texels[] = {10, 20, 10, 20};
  for (const auto& [first, second] : {std::pair{border, border}, {clamp, border}, {border, clamp}, {clamp, clamp}}) {
    auto sampling = sampling_of(linear, clamp);
    sampling.addressMode[0] = first, sampling.addressMode[1] = second;
    for (float& part : sampling.borderColor) part = 100;
    const std::string name = std::to_string(first) + " and " + std::to_string(second);
    show_words("a line, modes " + name, along, texture_of(array_of({.width = 2}, texels), sampling), row_of(0.5F));
    const CUarray layers = array_of({.width = 2, .depth = 2, .flags = CUDA_ARRAY3D_LAYERED}, texels);
    show_words("layers, modes " + name, words("tex.a1d.v4.f32.f32", "{%r1, %f0}]"), texture_of(layers, sampling),
               row_of(0.5F, 1));
  }
}

// Reads by texel number in two and more dimensions, outside the array.
GROUP(texel_reads_numbered, InContext) {
  const float texels[] = {1, 2, 3, 4, 5, 6, 7, 8};
  const CUarray plane = array_of({.width = 2, .height = 2}, texels);
  const CUarray solid = array_of({.width = 2, .height = 2, .depth = 2}, texels);
  const CUarray layers = array_of({.width = 2, .height = 2, .depth = 2, .flags = CUDA_ARRAY3D_LAYERED}, texels);
  const CUarray lines = array_of({.width = 2, .depth = 2, .flags = CUDA_ARRAY3D_LAYERED}, texels);
  for (const CUaddress_mode mode : modes) {
    auto sampling = sampling_of(point, mode, CU_TRSF_NORMALIZED_COORDINATES);
    for (float& part : sampling.borderColor) part = 7;
    const std::string name = "mode " + std::to_string(mode) + ", ";
    for (const auto& [x, y] : {std::pair{0, 1}, {-1, 0}, {2, 0}, {0, -1}, {0, 2}, {1 << 30, 0}}) {
      const std::string place = std::to_string(x) + ", " + std::to_string(y);
      show_words(name + place, numbered_across, texture_of(plane, sampling), row_of(x, y));
    }
    show_words(name + "3D, behind the last", words("tex.3d.v4.f32.s32", "{%r0, %r1, %r2, %r2}]"),
               texture_of(solid, sampling), row_of(0, 1, 2));
    show_words(name + "layers, behind the last", words("tex.a2d.v4.f32.s32", "{%r2, %r0, %r1, %r1}]"),
               texture_of(layers, sampling), row_of(0, 2, 2));
    show_words(name + "layers of lines", words("tex.a1d.v4.f32.s32", "{%r1, %r0}]"), texture_of(lines, sampling),
               row_of(1, 1));
  }
  const unsigned long long line = texture_of(array_of({.width = 2}, texels), sampling_of(point, clamp));
  show_words("a line, by level and number", words("tex.level.1d.v4.f32.s32", "{%r0}], %r1"), line, row_of(1, 0));
}

GROUP(texel_reads_levels, InContext) {
  const CUmipmappedArray levels = make_mipmapped(described(4, 4, 0, 0, CU_AD_FORMAT_FLOAT), 2);
  const std::array<float, 16> low{100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100};
  const std::array<float, 4> high{356, 356, 356, 356};
  for (unsigned level = 0; level < 2; ++level) {
    auto copy = zeroed<CUDA_MEMCPY3D>();
    copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcHost = level == 0 ? low.data() : high.data();
    copy.srcPitch = copy.WidthInBytes = 16U >> level, copy.srcHeight = copy.Height = 4U >> level, copy.Depth = 1;
    CU(cuMipmappedArrayGetLevel)(&copy.dstArray, levels, level);
    CU(cuMemcpy3D_v2)(&copy);
  }
  auto sampling = sampling_of(linear, clamp, CU_TRSF_NORMALIZED_COORDINATES);
  sampling.mipmapFilterMode = linear, sampling.maxMipmapLevelClamp = 9, sampling.mipmapLevelBias = 0;
  const auto resource = resource_of(levels);
  CUtexObject object = 0;
  CU(cuTexObjectCreate)(&object, &resource, &sampling, nullptr);
  const std::string at_level = words("tex.level.2d.v4.f32.f32", "{%f0, %f0}], %f1");
  for (int k = 0; k <= 8; ++k) {
    const float level = (128 + static_cast<float>(k) / 4) / 256;
    show_words("level 128 and " + std::to_string(k) + " of 4", at_level, object, row_of(0.5F, level));
  }
  sampling.mipmapLevelBias = 0.5F;
  CU(cuTexObjectCreate)(&object, &resource, &sampling, nullptr);
  show_words("biased by a gradient", words("tex.grad.2d.v4.f32.f32", "{%f0, %f0}], {%f1, %f2}, {%f2, %f1}"), object,
             row_of(0.5F, 0.25F, 0.0F));
}

GROUP(texel_sizes, InContext) {
  const unsigned char none[64] = {};
  const auto ask = [&](const char* name, std::size_t depth, unsigned flags) {
    const CUarray array = array_of({CU_AD_FORMAT_UNSIGNED_INT8, 1, 2, 2, depth, flags}, none);
    for (const char* asked : {"width", "height", "depth"}) {
      show_words(std::string(name) + ": " + asked, std::string("txq.") + asked + ".b32 %r20, [%rd1];",
                 texture_of(array, sampling_of(point, clamp)), {});
    }
  };
  ask("3D", 5, 0);
  ask("cube", 6, CUDA_ARRAY3D_CUBEMAP);
  ask("layered cube", 12, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED);
}

// Shows where a query fails that only texture references support.
GROUP(texel_questions_to_references, InContext) {
  const char text[] =
      ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 object)\n{\n"
      ".reg .pred %p<2>;\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [object];\n"
      "txq.array_size.b32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 trap;\nret;\n}\n";
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  const CUresult loaded = CU(cuModuleLoadData)(&module, text);
  show("cuModuleLoadData", loaded);
  show("cuModuleGetFunction, or why there is no module",
       loaded == CUDA_SUCCESS ? CU(cuModuleGetFunction)(&function, module, "k") : loaded);
}

// Reads through an empty table entry. Each of these reads may end the context.
GROUP(texel_reads_of_number_0, InContext) {
  show_words("by number", numbered, 0, row_of(0), 4);
  show_words("by place", along, 0, row_of(0.5F), 4);
  show_words("its width", "txq.width.b32 %r20, [%rd1];", 0, {});
}
GROUP(texel_reads_of_a_destroyed_one, InContext) {
  const float texels[] = {1, 2, 3, 4};
  const unsigned long long object = texture_of(array_of({.width = 4}, texels), sampling_of(point, clamp));
  CU(cuTexObjectDestroy)(object);
  show_words("by place", along, object, row_of(0.5F), 4);
  show_words("its width", "txq.width.b32 %r20, [%rd1];", object, {});
}
GROUP(texel_reads_of_number_5, InContext) { show_words("by place", along, 5, row_of(0.5F), 4); }
GROUP(texel_reads_of_number_1000, InContext) { show_words("by place", along, 1000, row_of(0.5F), 4); }

GROUP(texel_reads_through_a_surface, InContext) {
  const unsigned texels[] = {100, 101, 102, 103};
  const Texels shape{.format = CU_AD_FORMAT_UNSIGNED_INT32, .width = 4, .flags = CUDA_ARRAY3D_SURFACE_LDST};
  show_words("by place", along, surface_of(array_of(shape, texels)), row_of(0.5F), 4);
}
GROUP(texel_stores_through_a_texture, InContext) {
  const unsigned texels[] = {100, 101, 102, 103};
  const Texels shape{.format = CU_AD_FORMAT_UNSIGNED_INT32, .width = 4, .flags = CUDA_ARRAY3D_SURFACE_LDST};
  const CUarray array = array_of(shape, texels);
  const unsigned long long texture = texture_of(array, sampling_of(point, clamp));
  show_words("loaded through it", "suld.b.1d.b32.zero {%r20}, [%rd1, {4}];", texture, {});
  show_words("stored through it", "sust.b.1d.b32.zero [%rd1, {0}], {7};", texture, {});
  unsigned back[4] = {};
  CU(cuMemcpyAtoH_v2)(back, array, 0, sizeof back);
  show("the first texel", back[0]);
}
GROUP(texel_stores_to_number_0, InContext) { show_end("trap", "suld.b.1d.b32.trap {%r20}, [%rd1, {0}];", 0, {}); }

// Shows the effect of copying a part of a texel.
GROUP(texel_parts_copied, InContext) {
  const unsigned texels[] = {0x11111111, 0x22222222, 0x33333333, 0x44444444};
  const CUarray array = array_of({.format = CU_AD_FORMAT_UNSIGNED_INT32, .width = 4}, texels);
  const unsigned char bytes[] = {0xaa, 0xbb, 0xcc, 0xdd};
  unsigned back[4] = {};
  show("at half a texel", CU(cuMemcpyHtoA_v2)(array, 2, bytes, 4));
  show("half a texel", CU(cuMemcpyHtoA_v2)(array, 8, bytes, 2));
  CU(cuMemcpyAtoH_v2)(back, array, 0, sizeof back);
  for (int k = 0; k < 4; ++k) show("texel " + std::to_string(k), static_cast<long long>(back[k]));
}

}  // namespace
}  // namespace contract
