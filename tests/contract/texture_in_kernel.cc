// Cases for a kernel's reads of textures, mainly where the documentation does not define the result. Floats are shown
// as bits.
#include <limits>

#include "tests/contract/kernel_textures.h"

namespace contract {
namespace {

constexpr CUfilter_mode point = CU_TR_FILTER_MODE_POINT;
constexpr CUfilter_mode linear = CU_TR_FILTER_MODE_LINEAR;
constexpr CUaddress_mode modes[] = {CU_TR_ADDRESS_MODE_WRAP, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_MIRROR,
                                    CU_TR_ADDRESS_MODE_BORDER};
constexpr CUaddress_mode clamp = CU_TR_ADDRESS_MODE_CLAMP;
constexpr unsigned normalized = CU_TRSF_NORMALIZED_COORDINATES;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

std::string words(const std::string& opcode, const std::string& operands) {
  return opcode + " {%r20, %r21, %r22, %r23}, [%rd1, " + operands + ";";
}
const std::string along = words("tex.1d.v4.f32.f32", "{%f0}]");
const std::string numbered = words("tex.1d.v4.f32.s32", "{%r0}]");
const std::string across = words("tex.2d.v4.f32.f32", "{%f0, %f1}]");
const std::string towards = words("tex.cube.v4.f32.f32", "{%f0, %f1, %f2, %f2}]");

CUarray row_of_four() {
  const float texels[] = {10, 20, 40, 80};
  return array_of({.width = 4}, texels);
}

std::string named(const char* what, float x) { return std::string(what) + " at " + std::to_string(x); }

GROUP(texture_reads_channels, InContext) {
  const unsigned char bytes[] = {255, 51, 0, 1};
  const float floats[] = {2, 3, 4, 5};
  const auto plain = sampling_of(point, clamp);
  const auto whole = sampling_of(point, clamp, CU_TRSF_READ_AS_INTEGER);
  for (const unsigned count : {1U, 2U, 4U}) {
    const std::string name = std::to_string(count) + " channels";
    const CUarray small = array_of({CU_AD_FORMAT_UNSIGNED_INT8, count}, bytes);
    show_words(name + " of floats", numbered, texture_of(array_of({CU_AD_FORMAT_FLOAT, count}, floats), plain), {}, 4);
    show_words(name + " of bytes", numbered, texture_of(small, plain), {}, 4);
    show_words(name + " of bytes as integers", numbered, texture_of(small, whole), {}, 4);
  }
}

GROUP(texture_reads_signed, InContext) {
  const signed char bytes[] = {-128, -127, 127, 1};
  const short shorts[] = {-32768, -32767, 32767, 1};
  const unsigned short halves[] = {0x3c00, 0x0001, 0x7c00, 0xc000};
  const auto plain = sampling_of(point, clamp);
  show_words("bytes", numbered, texture_of(array_of({CU_AD_FORMAT_SIGNED_INT8, 4}, bytes), plain), {}, 4);
  show_words("shorts", numbered, texture_of(array_of({CU_AD_FORMAT_SIGNED_INT16, 4}, shorts), plain), {}, 4);
  show_words("halves", numbered, texture_of(array_of({CU_AD_FORMAT_HALF, 4}, halves), plain), {}, 4);
}

GROUP(texture_reads_srgb, InContext) {
  constexpr unsigned char encoded[] = {1, 10, 11, 100, 188, 254};
  for (const unsigned char value : encoded) {
    const unsigned char bytes[] = {value, value, value, value};
    const CUarray array = array_of({CU_AD_FORMAT_UNSIGNED_INT8, 4}, bytes);
    show_words("sRGB of " + std::to_string(value), numbered, texture_of(array, sampling_of(point, clamp, CU_TRSF_SRGB)),
               {}, 4);
  }
}

GROUP(texture_reads_points, InContext) {
  const CUarray array = row_of_four();
  for (const CUaddress_mode mode : modes) {
    const std::string name = "mode " + std::to_string(mode) + " at ";
    const unsigned long long scaled = texture_of(array, sampling_of(point, mode, normalized));
    for (const float x :
         {-1.1f, -0.9f, -0.1f, -0.0f, 0.3f, 0.99f, 1.0f, 1.1f, 1.9f, 2.3f, 1e8f, infinity, not_a_number}) {
      show_words(name + std::to_string(x), along, scaled, row_of(x));
    }
    const unsigned long long plain = texture_of(array, sampling_of(point, mode));
    for (const float x : {-1.0f, -0.01f, 3.99f, 4.0f, 5.0f}) {
      show_words(name + std::to_string(x) + ", not normalised", along, plain, row_of(x));
    }
  }
}

// Shows whether a coordinate is rounded before point sampling selects its texel.
GROUP(texture_reads_points_at_edges, InContext) {
  const unsigned long long plain = texture_of(row_of_four(), sampling_of(point, clamp));
  for (const int shift : {8, 9, 10, 12, 16, 20, 23}) {
    const float x = 1 - 1.0f / static_cast<float>(1 << shift);
    show_words("1 less 2^-" + std::to_string(shift), along, plain, row_of(x));
  }
}

GROUP(texture_reads_linear, InContext) {
  const CUarray array = row_of_four();
  for (const CUaddress_mode mode : modes) {
    const std::string name = "mode " + std::to_string(mode) + " at ";
    const unsigned long long scaled = texture_of(array, sampling_of(linear, mode, normalized));
    for (const float x : {-0.0625f, 0.0f, 0.125f, 0.25f, 0.3125f, 0.9375f, 1.0f, 1.25f}) {
      show_words(name + std::to_string(x), along, scaled, row_of(x));
    }
  }
}

// Shows the bits and the rounding of the filter weight: between texels of 0 and 256, the value equals the weight.
GROUP(texture_reads_weights, InContext) {
  const float texels[] = {0, 256};
  const unsigned long long object = texture_of(array_of({.width = 2}, texels), sampling_of(linear, clamp));
  for (int k = 0; k <= 16; ++k) {
    const float x = 0.5f + static_cast<float>(k) / 1024;
    show_words("middle and " + std::to_string(k) + " of 1024", along, object, row_of(x));
  }
  for (int k = 1; k <= 4; ++k) {
    const float x = 1.5f - static_cast<float>(k) / 1024;
    show_words("next less " + std::to_string(k) + " of 1024", along, object, row_of(x));
  }
}

GROUP(texture_reads_no_weight, InContext) {
  const float texels[] = {1, infinity, not_a_number};
  const unsigned long long object = texture_of(array_of({.width = 3}, texels), sampling_of(linear, clamp));
  for (const float x : {0.5f, 1.0f, 1.5f, 2.0f}) show_words(named("linear", x), along, object, row_of(x));
}

GROUP(texture_reads_outside, InContext) {
  const CUarray array = row_of_four();
  for (const CUaddress_mode mode : modes) {
    auto sampling = sampling_of(point, mode, normalized);
    for (float& part : sampling.borderColor) part = 7;
    const unsigned long long object = texture_of(array, sampling);
    for (const int x : {-1, 0, 3, 4, 100}) {
      show_words("mode " + std::to_string(mode) + ", texel " + std::to_string(x), numbered, object, row_of(x), 4);
    }
  }
  CUdeviceptr a = 0;
  CU(cuMemAlloc_v2)(&a, 4096);
  CU(cuMemsetD32_v2)(a, row_word(5.0f), 1024);
  CUDA_RESOURCE_DESC resource;
  std::memset(&resource, 0, sizeof resource);
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear = {.devPtr = a, .format = CU_AD_FORMAT_FLOAT, .numChannels = 1, .sizeInBytes = 512};
  const auto plain = sampling_of(point, clamp);
  CUtexObject object = 0;
  CU(cuTexObjectCreate)(&object, &resource, &plain, nullptr);
  for (const int x : {-1, 0, 127, 128, 1 << 30}) {
    show_words("linear memory, texel " + std::to_string(x), numbered, object, row_of(x), 4);
  }
}

GROUP(texture_reads_border, InContext) {
  auto sampling = sampling_of(point, CU_TR_ADDRESS_MODE_BORDER);
  for (unsigned k = 0; k < 4; ++k) sampling.borderColor[k] = 1.5f + static_cast<float>(k);
  const unsigned char bytes[] = {1, 2, 3, 4};
  show_words("of one float", along, texture_of(row_of_four(), sampling), row_of(-1.0f), 4);
  show_words("of four bytes", along, texture_of(array_of({CU_AD_FORMAT_UNSIGNED_INT8, 4}, bytes), sampling),
             row_of(-1.0f), 4);
  sampling.flags = CU_TRSF_READ_AS_INTEGER;
  show_words("of four integers", along, texture_of(array_of({CU_AD_FORMAT_UNSIGNED_INT8, 4}, bytes), sampling),
             row_of(-1.0f), 4);
}

GROUP(texture_reads_layers, InContext) {
  const float texels[] = {1, 2, 10, 20, 100, 200};
  const CUarray array = array_of({.width = 2, .height = 1, .depth = 3, .flags = CUDA_ARRAY3D_LAYERED}, texels);
  const unsigned long long object = texture_of(array, sampling_of(point, clamp));
  for (const int layer : {0, 1, 2, 3, 100, -1}) {
    show_words("layer " + std::to_string(layer), words("tex.a2d.v4.f32.f32", "{%r0, %f1, %f1, %f1}]"), object,
               row_of(layer, 1.5f));
  }
}

GROUP(texture_gathers, InContext) {
  float texels[36];
  for (unsigned k = 0; k < 36; ++k) texels[k] = static_cast<float>(k / 4 + 10 * (k % 4));
  const CUarray array = array_of({CU_AD_FORMAT_FLOAT, 4, 3, 3, 0, CUDA_ARRAY3D_TEXTURE_GATHER}, texels);
  const unsigned long long object = texture_of(array, sampling_of(point, clamp));
  for (const char* channel : {"r", "g", "b", "a"}) {
    const std::string opcode = std::string("tld4.") + channel + ".2d.v4.f32.f32";
    show_words(std::string("channel ") + channel, words(opcode, "{%f0, %f1}]"), object, row_of(1.0f, 2.0f), 4);
  }
  const std::string red = words("tld4.r.2d.v4.f32.f32", "{%f0, %f1}]");
  for (const float less : {1.0f / 128, 1.0f / 512, 1.0f / 1024, 1.0f / 65536}) {
    show_words(named("less", less), red, object, row_of(1.5f - less, 1.0f), 4);
  }
  show_words("at a corner", red, object, row_of(0.0f, 3.0f), 4);
}

unsigned long long three_levels(CUfilter_mode between, float bias, float least, float most) {
  const CUDA_ARRAY3D_DESCRIPTOR description = {
      .Width = 4, .Height = 4, .Depth = 0, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1, .Flags = 0};
  CUmipmappedArray mipmapped = nullptr;
  CU(cuMipmappedArrayCreate)(&mipmapped, &description, 3);
  for (unsigned level = 0; mipmapped != nullptr && level < 3; ++level) {
    const float value = level == 0 ? 100.0f : level == 1 ? 200.0f : 400.0f;
    const std::array<float, 16> texels = [&] {
      std::array<float, 16> all;
      all.fill(value);
      return all;
    }();
    CUDA_MEMCPY3D copy;
    std::memset(&copy, 0, sizeof copy);
    copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = texels.data();
    copy.srcPitch = copy.WidthInBytes = 16 >> level;
    copy.srcHeight = copy.Height = 4 >> level;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY, copy.Depth = 1;
    CU(cuMipmappedArrayGetLevel)(&copy.dstArray, mipmapped, level);
    CU(cuMemcpy3D_v2)(&copy);
  }
  CUDA_RESOURCE_DESC resource;
  std::memset(&resource, 0, sizeof resource);
  resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  resource.res.mipmap.hMipmappedArray = mipmapped;
  auto sampling = sampling_of(linear, clamp, normalized);
  sampling.mipmapFilterMode = between;
  sampling.mipmapLevelBias = bias;
  sampling.minMipmapLevelClamp = least, sampling.maxMipmapLevelClamp = most;
  CUtexObject object = 0;
  if (mipmapped != nullptr) CU(cuTexObjectCreate)(&object, &resource, &sampling, nullptr);
  return object;
}

GROUP(texture_levels, InContext) {
  const std::string at_level = words("tex.level.2d.v4.f32.f32", "{%f0, %f0}], %f1");
  const std::string by_gradient = words("tex.grad.2d.v4.f32.f32", "{%f0, %f0}], {%f1, %f2}, {%f3, %f4}");
  const unsigned long long blended = three_levels(linear, 0, 0, 9), nearest = three_levels(point, 0, 0, 9);
  for (const float level : {-1.0f, 0.0f, 0.25f, 0.501953125f, 1.5f, 2.0f, 9.0f, not_a_number}) {
    show_words(named("blended", level), at_level, blended, row_of(0.5f, level));
  }
  for (const float level : {0.25f, 0.498046875f, 0.5f, 0.501953125f, 1.5f, 1.75f}) {
    show_words(named("nearest", level), at_level, nearest, row_of(0.5f, level));
  }
  show_words("without a level", across, blended, row_of(0.5f, 0.5f));
  show_words("a gradient of one texel", by_gradient, blended, row_of(0.5f, 0.25f, 0.0f, 0.0f, 0.0f));
  show_words("a gradient of two", by_gradient, blended, row_of(0.5f, 0.25f, 0.0f, 0.0f, 0.5f));
  show_words("a gradient of none", by_gradient, blended, row_of(0.5f, 0.0f, 0.0f, 0.0f, 0.0f));
  const unsigned long long biased = three_levels(linear, 0.5f, 0, 9), held = three_levels(linear, 0, 0.75f, 1.25f);
  show_words("biased, without a level", across, biased, row_of(0.5f, 0.5f));
  show_words("biased at 0", at_level, biased, row_of(0.5f, 0.0f));
  show_words("held, without a level", across, held, row_of(0.5f, 0.5f));
  show_words("held at 0", at_level, held, row_of(0.5f, 0.0f));
  show_words("held at 2", at_level, held, row_of(0.5f, 2.0f));
  const std::string numbered_level = words("tex.level.2d.v4.f32.s32", "{%r0, %r0}], %r1");
  for (const int level : {0, 1, 2, 3, -1}) {
    show_words("texel 0 of level " + std::to_string(level), numbered_level, blended, row_of(0, level), 4);
  }
  show_words("texel 3 of level 1", numbered_level, blended, row_of(3, 1), 4);
}

CUarray faces(unsigned flags) {
  float texels[24];
  for (unsigned k = 0; k < 24; ++k) texels[k] = static_cast<float>(1 << (k / 4));
  return array_of({.width = 2, .height = 2, .depth = 6, .flags = CUDA_ARRAY3D_CUBEMAP | flags}, texels);
}

GROUP(texture_cubes, InContext) {
  const unsigned long long object = texture_of(faces(0), sampling_of(point, clamp, normalized));
  const std::array<float, 3> directions[] = {{1, 0, 0},  {-1, 0, 0}, {0, 1, 0},  {0, -1, 0}, {0, 0, 1},    {0, 0, -1},
                                             {1, 1, 0},  {1, 0, 1},  {0, 1, 1},  {1, 1, 1},  {-1, -1, -1}, {-1, 1, 0},
                                             {-1, 0, 1}, {0, -1, 1}, {1, -1, 1}, {0, 0, 0}};
  for (const auto& [x, y, z] : directions) {
    const std::string name = std::to_string(int(x)) + " " + std::to_string(int(y)) + " " + std::to_string(int(z));
    show_words(name, towards, object, row_of(x, y, z));
  }
}

GROUP(texture_cubes_at_edges, InContext) {
  for (const unsigned flags : {0U, unsigned{CU_TRSF_SEAMLESS_CUBEMAP}}) {
    const std::string name = flags == 0 ? "with seams: " : "seamless: ";
    for (const CUaddress_mode mode : {CU_TR_ADDRESS_MODE_WRAP, clamp}) {
      const unsigned long long object = texture_of(faces(0), sampling_of(linear, mode, normalized | flags));
      const std::string in_mode = name + "mode " + std::to_string(mode);
      show_words(in_mode + ", an edge", towards, object, row_of(1.0f, 0.0f, 1.0f));
      show_words(in_mode + ", near it", towards, object, row_of(1.0f, 0.0f, 0.75f));
      show_words(in_mode + ", a corner", towards, object, row_of(1.0f, 1.0f, 1.0f));
    }
  }
}

GROUP(texture_queries, InContext) {
  const unsigned char bytes[32] = {};
  auto sampling = sampling_of(linear, CU_TR_ADDRESS_MODE_WRAP, normalized);
  sampling.addressMode[1] = CU_TR_ADDRESS_MODE_MIRROR;
  const CUarray flat = array_of({CU_AD_FORMAT_UNSIGNED_INT8, 4, 4, 2}, bytes);
  const CUarray layered = array_of({CU_AD_FORMAT_HALF, 1, 2, 2, 3, CUDA_ARRAY3D_LAYERED}, bytes);
  const CUarray line = array_of({CU_AD_FORMAT_SIGNED_INT16, 2, 8}, bytes);
  for (const auto& [name, array] : {std::pair{"2D", flat}, {"2D layered", layered}, {"1D", line}}) {
    const unsigned long long object = texture_of(array, sampling);
    for (const char* asked : {"width", "height", "depth", "array_size", "num_mipmap_levels", "num_samples",
                              "channel_data_type", "channel_order", "normalized_coords", "filter_mode", "addr_mode_0",
                              "addr_mode_1", "force_unnormalized_coords"}) {
      show_words(std::string(name) + ": " + asked, std::string("txq.") + asked + ".b32 %r20, [%rd1];", object, {});
    }
  }
}

// ---- faults: each case is a group of its own, because it ends the context

GROUP(texture_fault_number_0, InContext) { show_end("tex", numbered, 0, {}); }
GROUP(texture_fault_query_0, InContext) { show_end("txq", "txq.width.b32 %r20, [%rd1];", 0, {}); }
GROUP(texture_fault_made_up, InContext) { show_end("tex", numbered, 0x12345, {}); }
GROUP(texture_fault_wide_number, InContext) { show_end("tex", numbered, ~0ULL, {}); }
GROUP(texture_fault_destroyed, InContext) {
  const unsigned long long object = texture_of(row_of_four(), sampling_of(point, clamp));
  show("cuTexObjectDestroy", CU(cuTexObjectDestroy)(object));
  show_end("tex", numbered, object, {});
}
GROUP(texture_fault_freed_memory, InContext) {
  // The kernel's module is placed at the freed address of `small`. Without that block, the simulated GPU would place
  // the module at the address of the texture.
  CUdeviceptr small = 0, a = 0;
  CU(cuMemAlloc_v2)(&small, 64 << 10);
  CU(cuMemAlloc_v2)(&a, 64 << 20);
  CUDA_RESOURCE_DESC resource;
  std::memset(&resource, 0, sizeof resource);
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear = {.devPtr = a, .format = CU_AD_FORMAT_FLOAT, .numChannels = 1, .sizeInBytes = 64 << 20};
  const auto plain = sampling_of(point, clamp);
  CUtexObject object = 0;
  CU(cuTexObjectCreate)(&object, &resource, &plain, nullptr);
  CU(cuMemFree_v2)(a);
  CU(cuMemFree_v2)(small);
  show_end("tex", numbered, object, {});
}

}  // namespace
}  // namespace contract
