// Cases for arrays: their descriptions, geometries and limits.
#include "tests/contract/arrays.h"

namespace contract {
namespace {

// Creates an array, shows whether the array reports the given description, and destroys the array.
void show_created(const std::string& what, const CUDA_ARRAY3D_DESCRIPTOR& description) {
  CUarray array = nullptr;
  const CUresult created = CU(cuArray3DCreate_v2)(&array, &description);
  show(what, created);
  auto found = zeroed<CUDA_ARRAY3D_DESCRIPTOR>();
  if (created == CUDA_SUCCESS) CU(cuArray3DGetDescriptor_v2)(&found, array);
  const bool same = found.Width == description.Width && found.Height == description.Height &&
                    found.Depth == description.Depth && found.Format == description.Format &&
                    found.NumChannels == description.NumChannels && found.Flags == description.Flags;
  show_flag(what + ", its description", same);
  if (created == CUDA_SUCCESS) CU(cuArrayDestroy)(array);
}

GROUP(arrays, InContext) {
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR d{.Width = 64, .Height = 16, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 2};
  show("cuArrayCreate", CU(cuArrayCreate_v2)(&array, &d));
  auto found = zeroed<CUDA_ARRAY_DESCRIPTOR>();
  show("cuArrayGetDescriptor", CU(cuArrayGetDescriptor_v2)(&found, array));
  show("its width", static_cast<long long>(found.Width));
  show("its height", static_cast<long long>(found.Height));
  show("its format", found.Format);
  show("its channels", found.NumChannels);
  auto whole = zeroed<CUDA_ARRAY3D_DESCRIPTOR>();
  show("cuArray3DGetDescriptor", CU(cuArray3DGetDescriptor_v2)(&whole, array));
  show("its depth", static_cast<long long>(whole.Depth));
  show("its flags", whole.Flags);
  show("cuArrayDestroy", CU(cuArrayDestroy)(array));
  const CUarray solid = make_array(described(8, 4, 2));
  show("cuArrayGetDescriptor of three dimensions", CU(cuArrayGetDescriptor_v2)(&found, solid));
  show("its width, of three dimensions", static_cast<long long>(found.Width));
  const CUarray layered = make_array(described(8, 4, 2, CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST));
  show("cuArrayGetDescriptor of layers", CU(cuArrayGetDescriptor_v2)(&found, layered));
  show("cuArray3DGetDescriptor null", CU(cuArray3DGetDescriptor_v2)(nullptr, solid));
  show("cuArrayGetDescriptor null", CU(cuArrayGetDescriptor_v2)(nullptr, solid));
}

GROUP(array_errors, InContext) {
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR d{.Width = 64, .Height = 16, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
  show("cuArrayCreate null", CU(cuArrayCreate_v2)(nullptr, &d));
  show("cuArrayCreate no description", CU(cuArrayCreate_v2)(&array, nullptr));
  for (const unsigned channels : {0U, 3U, 5U, 8U}) {
    d.NumChannels = channels;
    show("cuArrayCreate " + std::to_string(channels) + " channels", CU(cuArrayCreate_v2)(&array, &d));
  }
  d.NumChannels = 1;
  for (const int format : {0, 4, 7, 0x11, 0x21, 0x40, 0xcc, 0x7f}) {
    d.Format = odd<CUarray_format>(format);
    show("cuArrayCreate format " + std::to_string(format), CU(cuArrayCreate_v2)(&array, &d));
  }
  d.Format = CU_AD_FORMAT_FLOAT;
  d.Width = 0;
  show("cuArrayCreate width 0", CU(cuArrayCreate_v2)(&array, &d));
  d.Width = d.Height = 0;
  show("cuArrayCreate nothing", CU(cuArrayCreate_v2)(&array, &d));
  d.Width = std::size_t{1} << 40;
  show("cuArrayCreate wide", CU(cuArrayCreate_v2)(&array, &d));
  d.Width = 1, d.Height = std::size_t{1} << 40;
  show("cuArrayCreate high", CU(cuArrayCreate_v2)(&array, &d));
  d.Width = d.Height = SIZE_MAX;
  show("cuArrayCreate absurd", CU(cuArrayCreate_v2)(&array, &d));
  const auto good = described(8, 8);
  show("cuArray3DCreate null", CU(cuArray3DCreate_v2)(nullptr, &good));
  show("cuArray3DCreate no description", CU(cuArray3DCreate_v2)(&array, nullptr));
}

GROUP(array_geometries, InContext) {
  show_created("1D", described(100));
  show_created("2D", described(100, 7));
  show_created("3D", described(100, 7, 3));
  show_created("1D layered", described(100, 0, 5, CUDA_ARRAY3D_LAYERED));
  show_created("2D layered", described(100, 7, 5, CUDA_ARRAY3D_LAYERED));
  show_created("cube", described(32, 32, 6, CUDA_ARRAY3D_CUBEMAP));
  show_created("layered cube", described(32, 32, 18, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED));
  show_created("gather", described(100, 7, 0, CUDA_ARRAY3D_TEXTURE_GATHER));
  show_created("surface 1D", described(100, 0, 0, CUDA_ARRAY3D_SURFACE_LDST));
  show_created("surface 2D", described(100, 7, 0, CUDA_ARRAY3D_SURFACE_LDST));
  show_created("surface 3D", described(100, 7, 3, CUDA_ARRAY3D_SURFACE_LDST));
  show_created("surface 1D layered", described(100, 0, 5, CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_LAYERED));
  show_created("surface 2D layered", described(100, 7, 5, CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_LAYERED));
  show_created("surface cube", described(32, 32, 6, CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP));
  show_created("surface and gather", described(100, 7, 0, CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_TEXTURE_GATHER));
  show_created("one of each", described(1, 1, 1));
  show_created("one layer", described(1, 1, 1, CUDA_ARRAY3D_LAYERED));
  show_created("color attachment", described(64, 64, 0, CUDA_ARRAY3D_COLOR_ATTACHMENT));
}

GROUP(array_geometry_errors, InContext) {
  show_created("depth without height", described(100, 0, 3));
  show_created("no layers", described(100, 7, 0, CUDA_ARRAY3D_LAYERED));
  show_created("no layers of one dimension", described(100, 0, 0, CUDA_ARRAY3D_LAYERED));
  show_created("cube that is no square", described(32, 16, 6, CUDA_ARRAY3D_CUBEMAP));
  show_created("cube of five faces", described(32, 32, 5, CUDA_ARRAY3D_CUBEMAP));
  show_created("cube of twelve faces", described(32, 32, 12, CUDA_ARRAY3D_CUBEMAP));
  show_created("cube of no faces", described(32, 32, 0, CUDA_ARRAY3D_CUBEMAP));
  show_created("layered cube of seven faces", described(32, 32, 7, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED));
  show_created("layered cube of no faces", described(32, 32, 0, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED));
  show_created("gather 1D", described(100, 0, 0, CUDA_ARRAY3D_TEXTURE_GATHER));
  show_created("gather 3D", described(100, 7, 3, CUDA_ARRAY3D_TEXTURE_GATHER));
  show_created("gather layered", described(100, 7, 3, CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_LAYERED));
  show_created("gather cube", described(32, 32, 6, CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_CUBEMAP));
  show_created("flag 512", described(100, 7, 0, 0x200));
  show_created("flag 1 << 31", described(100, 7, 0, 1U << 31));
  show_created("wide 3D", described(32769, 1, 1));
  show_created("wide 3D, the other limits", described(16385, 1, 16385));
  show_created("many layers", described(4, 4, 4096, CUDA_ARRAY3D_LAYERED));
  show_created("many layers of one dimension", described(4, 0, 4096, CUDA_ARRAY3D_LAYERED));
  show_created("a wide surface", described(65536, 0, 0, CUDA_ARRAY3D_SURFACE_LDST));
  show_created("a wide gather", described(65536, 1, 0, CUDA_ARRAY3D_TEXTURE_GATHER));
  show_created("a wide layer", described(65536, 0, 2, CUDA_ARRAY3D_LAYERED));
  show_created("too large", described(131072, 65536, 0, 0, CU_AD_FORMAT_FLOAT, 4));
  show_created("much too large", described(16384, 16384, 16384, 0, CU_AD_FORMAT_FLOAT, 4));
}

GROUP(array_formats, InContext) {
  for (const unsigned channels : {1U, 2U, 4U})
    for (const CUarray_format format :
         {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32,
          CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT32, CU_AD_FORMAT_HALF,
          CU_AD_FORMAT_FLOAT})
      show_created("format " + std::to_string(format) + ", " + std::to_string(channels) + " channels",
                   described(16, 8, 0, 0, format, channels));
}

GROUP(array_formats_normalised, InContext) {
  const auto show_format = [](CUarray_format format, unsigned channels) {
    show_created("format " + std::to_string(format) + ", " + std::to_string(channels) + " channels",
                 described(16, 8, 0, 0, format, channels));
  };
  unsigned channels = 1;
  for (unsigned format = CU_AD_FORMAT_UNORM_INT8X1; format <= CU_AD_FORMAT_SNORM_INT16X4; ++format) {
    show_format(static_cast<CUarray_format>(format), channels);
    channels = channels == 4 ? 1 : 2 * channels;
  }
  show_format(CU_AD_FORMAT_UNORM_INT8X4, 1);
  show_format(CU_AD_FORMAT_UNORM_INT8X1, 4);
  show_format(CU_AD_FORMAT_SNORM_INT16X2, 3);
}

GROUP(array_questions, InContext) {
  const CUarray array = make_array(described(16, 8));
  CUarray plane = nullptr;
  auto sparse = zeroed<CUDA_ARRAY_SPARSE_PROPERTIES>();
  auto needs = zeroed<CUDA_ARRAY_MEMORY_REQUIREMENTS>();
  show("cuArrayGetSparseProperties", CU(cuArrayGetSparseProperties)(&sparse, array));
  show("cuArrayGetSparseProperties null", CU(cuArrayGetSparseProperties)(nullptr, array));
  show("cuArrayGetMemoryRequirements", CU(cuArrayGetMemoryRequirements)(&needs, array, device));
  show("cuArrayGetMemoryRequirements null", CU(cuArrayGetMemoryRequirements)(nullptr, array, device));
  show("cuArrayGetMemoryRequirements device 99", CU(cuArrayGetMemoryRequirements)(&needs, array, 99));
  show("cuArrayGetPlane 0", CU(cuArrayGetPlane)(&plane, array, 0));
  show("cuArrayGetPlane 1", CU(cuArrayGetPlane)(&plane, array, 1));
  show("cuArrayGetPlane null", CU(cuArrayGetPlane)(nullptr, array, 0));
}

// The width depends on the device, so the case shows only whether there is one.
GROUP(linear_texture_width, InContext) {
  std::size_t width = 0;
  const auto ask = CU(cuDeviceGetTexture1DLinearMaxWidth);
  show("width", ask(&width, CU_AD_FORMAT_FLOAT, 4, device));
  show_flag("it is something", width != 0);
  show("null", ask(nullptr, CU_AD_FORMAT_FLOAT, 4, device));
  show("3 channels", ask(&width, CU_AD_FORMAT_FLOAT, 3, device));
  show("0 channels", ask(&width, CU_AD_FORMAT_FLOAT, 0, device));
  show("format 0", ask(&width, odd<CUarray_format>(0), 1, device));
  show("device 99", ask(&width, CU_AD_FORMAT_FLOAT, 1, 99));
}

GROUP(arrays_without_context, Initialized) {
  CUarray array = nullptr;
  const auto good = described(8, 8);
  std::size_t width = 0;
  show("cuArray3DCreate", CU(cuArray3DCreate_v2)(&array, &good));
  show("cuArray3DCreate null", CU(cuArray3DCreate_v2)(nullptr, &good));
  show("cuDeviceGetTexture1DLinearMaxWidth",
       CU(cuDeviceGetTexture1DLinearMaxWidth)(&width, CU_AD_FORMAT_FLOAT, 1, device));
  show("cuArrayDestroy null", CU(cuArrayDestroy)(nullptr));
}

// Freed arrays return their memory: the group creates more arrays in total than fit at the same time.
GROUP(arrays_again_and_again, InContext) {
  long long made = 0;
  for (int i = 0; i < 64; ++i) {
    const CUarray array = make_array(described(16384, 4096, 0, 0, CU_AD_FORMAT_FLOAT, 4));
    if (array != nullptr && CU(cuArrayDestroy)(array) == CUDA_SUCCESS) ++made;
  }
  show("arrays of 1 GiB, one after the other", made);
}

// Block and video formats. A driver that supports them reports its own sizes.
GROUP(array_formats_of_blocks, InContext) {
  show_created("BC1", described(64, 64, 0, 0, CU_AD_FORMAT_BC1_UNORM, 4));
  show_created("BC4", described(64, 64, 0, 0, CU_AD_FORMAT_BC4_UNORM, 1));
  show_created("BC7", described(64, 64, 0, 0, CU_AD_FORMAT_BC7_UNORM, 4));
  show_created("NV12", described(64, 64, 0, 0, CU_AD_FORMAT_NV12, 3));
  show_created("101010 2", described(64, 64, 0, 0, CU_AD_FORMAT_UNORM_INT_101010_2, 4));
}

GROUP(array_flags_of_memory, InContext) {
  show_created("depth texture", described(64, 64, 0, CUDA_ARRAY3D_DEPTH_TEXTURE));
  show_created("sparse", described(64, 64, 0, CUDA_ARRAY3D_SPARSE));
  show_created("deferred mapping", described(64, 64, 0, CUDA_ARRAY3D_DEFERRED_MAPPING));
  show_created("video", described(64, 64, 0, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE));
}

GROUP(array_null_handles, InContext) {
  CUarray plane = nullptr;
  auto d = zeroed<CUDA_ARRAY3D_DESCRIPTOR>();
  auto sparse = zeroed<CUDA_ARRAY_SPARSE_PROPERTIES>();
  auto needs = zeroed<CUDA_ARRAY_MEMORY_REQUIREMENTS>();
  show_guarded("cuArrayDestroy", [] { return CU(cuArrayDestroy)(nullptr); });
  show_guarded("cuArray3DGetDescriptor", [&] { return CU(cuArray3DGetDescriptor_v2)(&d, nullptr); });
  show_guarded("cuArrayGetSparseProperties", [&] { return CU(cuArrayGetSparseProperties)(&sparse, nullptr); });
  show_guarded("cuArrayGetMemoryRequirements",
               [&] { return CU(cuArrayGetMemoryRequirements)(&needs, nullptr, device); });
  show_guarded("cuArrayGetPlane", [&] { return CU(cuArrayGetPlane)(&plane, nullptr, 0); });
}

}  // namespace
}  // namespace contract
