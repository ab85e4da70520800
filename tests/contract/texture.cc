// Cases for texture objects: valid resources, and queries.
#include "tests/contract/arrays.h"

namespace contract {
namespace {

using Resource = CUDA_RESOURCE_DESC;
using Sampling = CUDA_TEXTURE_DESC;
using View = CUDA_RESOURCE_VIEW_DESC;

Resource linear(CUdeviceptr start, std::size_t bytes, CUarray_format format = CU_AD_FORMAT_FLOAT,
                unsigned channels = 1) {
  auto resource = zeroed<Resource>();
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear.devPtr = start;
  resource.res.linear.sizeInBytes = bytes;
  resource.res.linear.format = format;
  resource.res.linear.numChannels = channels;
  return resource;
}

Resource rows(CUdeviceptr start, std::size_t width, std::size_t height, std::size_t pitch,
              CUarray_format format = CU_AD_FORMAT_FLOAT, unsigned channels = 1) {
  auto resource = zeroed<Resource>();
  resource.resType = CU_RESOURCE_TYPE_PITCH2D;
  resource.res.pitch2D.devPtr = start;
  resource.res.pitch2D.width = width;
  resource.res.pitch2D.height = height;
  resource.res.pitch2D.pitchInBytes = pitch;
  resource.res.pitch2D.format = format;
  resource.res.pitch2D.numChannels = channels;
  return resource;
}

View view_of(CUresourceViewFormat format, std::size_t width, std::size_t height = 0, std::size_t depth = 0) {
  auto view = zeroed<View>();
  view.format = format, view.width = width, view.height = height, view.depth = depth;
  return view;
}

// Creates a texture object, shows the result, and destroys the object.
void show_created(const std::string& what, const Resource& resource, const Sampling& sampling,
                  const View* view = nullptr) {
  CUtexObject object = 0;
  const CUresult created = CU(cuTexObjectCreate)(&object, &resource, &sampling, view);
  show(what, created);
  if (created == CUDA_SUCCESS) CU(cuTexObjectDestroy)(object);
}

CUdeviceptr memory(std::size_t bytes) {
  CUdeviceptr start = 0;
  CU(cuMemAlloc_v2)(&start, bytes);
  return start;
}

GROUP(textures, InContext) {
  const auto plain = zeroed<Sampling>();
  const CUdeviceptr a = memory(1 << 20);
  show_created("1D", resource_of(make_array(described(64))), plain);
  show_created("2D", resource_of(make_array(described(64, 16))), plain);
  show_created("3D", resource_of(make_array(described(64, 16, 4))), plain);
  show_created("1D layered", resource_of(make_array(described(64, 0, 4, CUDA_ARRAY3D_LAYERED))), plain);
  show_created("2D layered", resource_of(make_array(described(64, 16, 4, CUDA_ARRAY3D_LAYERED))), plain);
  show_created("cube", resource_of(make_array(described(16, 16, 6, CUDA_ARRAY3D_CUBEMAP))), plain);
  show_created("gather", resource_of(make_array(described(64, 16, 0, CUDA_ARRAY3D_TEXTURE_GATHER))), plain);
  show_created("linear memory", linear(a, 4096), plain);
  show_created("rows", rows(a, 64, 16, 256), plain);
  auto normalized = plain;
  normalized.flags = CU_TRSF_NORMALIZED_COORDINATES;
  show_created("mipmapped", resource_of(make_mipmapped(described(64, 16), 4)), normalized);
  show_created("mipmapped, coordinates not normalised", resource_of(make_mipmapped(described(64, 16), 4)), plain);
  CUarray level = nullptr;
  CU(cuMipmappedArrayGetLevel)(&level, make_mipmapped(described(64, 16), 4), 2);
  show_created("a level", resource_of(level), plain);
}

GROUP(texture_descriptions, InContext) {
  const CUarray array = make_array(described(64, 16));
  const auto resource = resource_of(array);
  auto sampling = zeroed<Sampling>();
  sampling.addressMode[0] = CU_TR_ADDRESS_MODE_MIRROR;
  sampling.addressMode[1] = CU_TR_ADDRESS_MODE_BORDER;
  sampling.addressMode[2] = CU_TR_ADDRESS_MODE_CLAMP;
  sampling.filterMode = CU_TR_FILTER_MODE_POINT;
  sampling.flags = CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_READ_AS_INTEGER;
  sampling.maxAnisotropy = 8;
  sampling.mipmapLevelBias = 0.5f;
  sampling.minMipmapLevelClamp = 1, sampling.maxMipmapLevelClamp = 3;
  sampling.borderColor[2] = 0.25f;
  const auto view = view_of(CU_RES_VIEW_FORMAT_FLOAT_1X32, 64, 16);
  CUtexObject object = 0, other = 0;
  show("cuTexObjectCreate", CU(cuTexObjectCreate)(&object, &resource, &sampling, &view));
  show_flag("it is not 0", object != 0);
  CU(cuTexObjectCreate)(&other, &resource, &sampling, nullptr);
  show_flag("another one has another number", object != other);
  auto found_resource = zeroed<Resource>();
  auto found = zeroed<Sampling>();
  auto found_view = zeroed<View>();
  show("cuTexObjectGetResourceDesc", CU(cuTexObjectGetResourceDesc)(&found_resource, object));
  show("its type", found_resource.resType);
  show_flag("its array", found_resource.res.array.hArray == array);
  show("cuTexObjectGetTextureDesc", CU(cuTexObjectGetTextureDesc)(&found, object));
  show("its first address mode", found.addressMode[0]);
  show("its second address mode", found.addressMode[1]);
  show("its filter mode", found.filterMode);
  show("its flags", found.flags);
  show("its anisotropy", found.maxAnisotropy);
  show("ten times its bias", static_cast<long long>(found.mipmapLevelBias * 10));
  show("its greatest level", static_cast<long long>(found.maxMipmapLevelClamp));
  show("its border, hundredfold", static_cast<long long>(found.borderColor[2] * 100));
  show("cuTexObjectGetResourceViewDesc", CU(cuTexObjectGetResourceViewDesc)(&found_view, object));
  show("its view's format", found_view.format);
  show("its view's width", static_cast<long long>(found_view.width));
  show("cuTexObjectGetResourceViewDesc of none", CU(cuTexObjectGetResourceViewDesc)(&found_view, other));
  show("cuTexObjectGetResourceDesc null", CU(cuTexObjectGetResourceDesc)(nullptr, object));
  show("cuTexObjectGetTextureDesc null", CU(cuTexObjectGetTextureDesc)(nullptr, object));
  show("cuTexObjectGetResourceViewDesc null", CU(cuTexObjectGetResourceViewDesc)(nullptr, object));
  show("cuTexObjectDestroy", CU(cuTexObjectDestroy)(object));
}

GROUP(texture_descriptions_of_memory, InContext) {
  const CUdeviceptr a = memory(1 << 20);
  const auto plain = zeroed<Sampling>();
  CUtexObject object = 0;
  auto found = zeroed<Resource>();
  const auto line = linear(a, 4096, CU_AD_FORMAT_HALF, 4);
  CU(cuTexObjectCreate)(&object, &line, &plain, nullptr);
  show("cuTexObjectGetResourceDesc", CU(cuTexObjectGetResourceDesc)(&found, object));
  show("its type", found.resType);
  show("its size", static_cast<long long>(found.res.linear.sizeInBytes));
  show("its channels", found.res.linear.numChannels);
  show_flag("its address", found.res.linear.devPtr == a);
  const auto block = rows(a + 512, 32, 4, 512, CU_AD_FORMAT_UNSIGNED_INT16, 2);
  CU(cuTexObjectCreate)(&object, &block, &plain, nullptr);
  CU(cuTexObjectGetResourceDesc)(&found, object);
  show("rows, their type", found.resType);
  show("rows, their width", static_cast<long long>(found.res.pitch2D.width));
  show("rows, their height", static_cast<long long>(found.res.pitch2D.height));
  show("rows, their pitch", static_cast<long long>(found.res.pitch2D.pitchInBytes));
  show_flag("rows, their address", found.res.pitch2D.devPtr == a + 512);
  show("an array's flags", found.flags);
}

GROUP(texture_errors, InContext) {
  CUtexObject object = 0;
  const auto plain = zeroed<Sampling>();
  const auto resource = resource_of(make_array(described(64, 16)));
  show("null", CU(cuTexObjectCreate)(nullptr, &resource, &plain, nullptr));
  show("no resource", CU(cuTexObjectCreate)(&object, nullptr, &plain, nullptr));
  show("no sampling", CU(cuTexObjectCreate)(&object, &resource, nullptr, nullptr));
  auto other = resource;
  other.flags = 1;
  show_created("resource flags 1", other, plain);
  other = resource;
  other.resType = odd<CUresourcetype>(4);
  show_created("resource type 4", other, plain);
  other = resource;
  other.res.reserved.reserved[31] = 1;
  show_created("a reserved word of the resource", other, plain);
  auto sampling = plain;
  sampling.filterMode = odd<CUfilter_mode>(2);
  show_created("filter mode 2", resource, sampling);
  sampling = plain;
  sampling.mipmapFilterMode = odd<CUfilter_mode>(7);
  show_created("mipmap filter mode 7", resource, sampling);
  sampling = plain;
  sampling.addressMode[0] = odd<CUaddress_mode>(4);
  show_created("address mode 4", resource, sampling);
  sampling = plain;
  sampling.addressMode[2] = odd<CUaddress_mode>(9);
  show_created("third address mode 9", resource, sampling);
  for (const unsigned flags : {0x04U, 0x08U, 0x80U, 1U << 31}) {
    sampling = plain;
    sampling.flags = flags;
    show_created("flags " + std::to_string(flags), resource, sampling);
  }
  sampling = plain;
  sampling.reserved[0] = 1;
  show_created("a reserved word of the sampling", resource, sampling);
  sampling = plain;
  sampling.maxAnisotropy = 17;
  show_created("anisotropy 17", resource, sampling);
  sampling = plain;
  sampling.flags = CU_TRSF_SEAMLESS_CUBEMAP;
  show_created("seamless, of no cube", resource, sampling);
  show_created("seamless", resource_of(make_array(described(16, 16, 6, CUDA_ARRAY3D_CUBEMAP))), sampling);
}

// Combinations that CUDA's documentation calls unsupported, or does not mention.
GROUP(texture_sampling, InContext) {
  const auto resource = resource_of(make_array(described(64, 16, 0, 0, CU_AD_FORMAT_FLOAT)));
  const auto bytes = resource_of(make_array(described(64, 16, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4)));
  const auto words = resource_of(make_array(described(64, 16, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32)));
  for (const unsigned flags : {0U, unsigned{CU_TRSF_NORMALIZED_COORDINATES}})
    for (int mode = CU_TR_ADDRESS_MODE_WRAP; mode <= CU_TR_ADDRESS_MODE_BORDER; ++mode) {
      auto sampling = zeroed<Sampling>();
      for (CUaddress_mode& each : sampling.addressMode) each = static_cast<CUaddress_mode>(mode);
      sampling.flags = flags;
      show_created("address mode " + std::to_string(mode) + ", flags " + std::to_string(flags), resource, sampling);
    }
  auto linear_filter = zeroed<Sampling>();
  linear_filter.filterMode = CU_TR_FILTER_MODE_LINEAR;
  show_created("linear filter of floats", resource, linear_filter);
  show_created("linear filter of bytes", bytes, linear_filter);
  show_created("linear filter of words", words, linear_filter);
  linear_filter.flags = CU_TRSF_READ_AS_INTEGER;
  show_created("linear filter of bytes as integers", bytes, linear_filter);
  show_created("linear filter of floats as integers", resource, linear_filter);
  auto srgb = zeroed<Sampling>();
  srgb.flags = CU_TRSF_SRGB;
  show_created("sRGB of bytes", bytes, srgb);
  show_created("sRGB of floats", resource, srgb);
  auto clamps = zeroed<Sampling>();
  clamps.minMipmapLevelClamp = 5, clamps.maxMipmapLevelClamp = 2;
  show_created("levels in the wrong order", resource, clamps);
  clamps.minMipmapLevelClamp = -1;
  show_created("a level below 0", resource, clamps);
}

GROUP(texture_of_linear_memory, InContext) {
  const auto plain = zeroed<Sampling>();
  const CUdeviceptr a = memory(1 << 16);
  for (const unsigned offset : {16U, 32U, 128U, 256U, 512U})
    show_created("offset " + std::to_string(offset), linear(a + offset, 4096), plain);
  show_created("offset 4", linear(a + 4, 4096), plain);
  show_created("offset 1", linear(a + 1, 4096), plain);
  show_created("no address", linear(0, 4096), plain);
  show_created("nothing", linear(a, 0), plain);
  show_created("less than a texel", linear(a, 3), plain);
  show_created("a texel and a byte", linear(a, 5), plain);
  show_created("a byte too many", linear(a, (1 << 16) + 1), plain);
  show_created("far too many", linear(a, std::size_t{1} << 40), plain);
  show_created("absurdly many", linear(a, SIZE_MAX), plain);
  show_created("0 channels", linear(a, 4096, CU_AD_FORMAT_FLOAT, 0), plain);
  show_created("3 channels", linear(a, 4096, CU_AD_FORMAT_FLOAT, 3), plain);
  show_created("4 channels", linear(a, 4096, CU_AD_FORMAT_FLOAT, 4), plain);
  show_created("format 0", linear(a, 4096, odd<CUarray_format>(0)), plain);
  show_created("format 5", linear(a, 4096, odd<CUarray_format>(5)), plain);
  auto normalized = plain;
  normalized.flags = CU_TRSF_NORMALIZED_COORDINATES;
  show_created("coordinates normalised", linear(a, 4096), normalized);
  auto filtered = plain;
  filtered.filterMode = CU_TR_FILTER_MODE_LINEAR;
  show_created("linear filter", linear(a, 4096), filtered);
  const auto view = view_of(CU_RES_VIEW_FORMAT_FLOAT_1X32, 1024);
  show_created("with a view", linear(a, 4096), plain, &view);
  void* pinned = nullptr;
  CU(cuMemHostAlloc)(&pinned, 4096, 0);
  show_created("pinned memory", linear(address_of(pinned), 4096), plain);
  static float stack[1024];
  show_created("the program's memory", linear(address_of(stack) & ~CUdeviceptr{511}, 512), plain);
}

GROUP(texture_of_rows, InContext) {
  const auto plain = zeroed<Sampling>();
  const CUdeviceptr a = memory(1 << 16);
  show_created("rows", rows(a, 60, 64, 256), plain);
  show_created("a pitch of 240", rows(a, 60, 64, 240), plain);
  show_created("a pitch of 272", rows(a, 60, 64, 272), plain);
  show_created("a pitch of 288", rows(a, 60, 64, 288), plain);
  show_created("a pitch below the width", rows(a, 128, 64, 256), plain);
  show_created("a pitch of 0", rows(a, 60, 64, 0), plain);
  show_created("width 0", rows(a, 0, 64, 256), plain);
  show_created("height 0", rows(a, 60, 0, 256), plain);
  show_created("offset 256", rows(a + 256, 60, 16, 256), plain);
  show_created("offset 512", rows(a + 512, 60, 16, 256), plain);
  show_created("offset 32", rows(a + 32, 60, 16, 256), plain);
  show_created("no address", rows(0, 60, 16, 256), plain);
  show_created("a row too many", rows(a, 64, 257, 256), plain);
  show_created("far too many rows", rows(a, 64, 60000, 256), plain);
  show_created("more rows than there can be", rows(a, 64, 70000, 256), plain);
  show_created("a pitch that is too large", rows(a, 64, 1, 1 << 22), plain);
  show_created("wider than it can be", rows(a, 1 << 20, 1, 1 << 22), plain);
  show_created("0 channels", rows(a, 60, 16, 256, CU_AD_FORMAT_FLOAT, 0), plain);
  show_created("3 channels", rows(a, 16, 16, 256, CU_AD_FORMAT_FLOAT, 3), plain);
  show_created("format 5", rows(a, 60, 16, 256, odd<CUarray_format>(5)), plain);
  const auto view = view_of(CU_RES_VIEW_FORMAT_FLOAT_1X32, 60, 64);
  show_created("with a view", rows(a, 60, 64, 256), plain, &view);
}

GROUP(texture_views, InContext) {
  const auto plain = zeroed<Sampling>();
  const auto resource = resource_of(make_array(described(64, 16)));
  const auto with = [&](const std::string& what, const View& view) { show_created(what, resource, plain, &view); };
  with("no format", view_of(CU_RES_VIEW_FORMAT_NONE, 64, 16));
  with("the same format", view_of(CU_RES_VIEW_FORMAT_UINT_1X32, 64, 16));
  with("of the same size", view_of(CU_RES_VIEW_FORMAT_UINT_4X8, 64, 16));
  with("halves", view_of(CU_RES_VIEW_FORMAT_FLOAT_2X16, 64, 16));
  with("smaller texels", view_of(CU_RES_VIEW_FORMAT_UINT_1X8, 64, 16));
  with("larger texels", view_of(CU_RES_VIEW_FORMAT_FLOAT_4X32, 64, 16));
  with("smaller texels, wider", view_of(CU_RES_VIEW_FORMAT_UINT_1X8, 256, 16));
  with("blocks", view_of(CU_RES_VIEW_FORMAT_UNSIGNED_BC1, 256, 64));
  with("format 99", view_of(odd<CUresourceViewFormat>(99), 64, 16));
  with("another width", view_of(CU_RES_VIEW_FORMAT_UINT_1X32, 32, 16));
  with("another height", view_of(CU_RES_VIEW_FORMAT_UINT_1X32, 64, 8));
  with("depth 1", view_of(CU_RES_VIEW_FORMAT_UINT_1X32, 64, 16, 1));
  with("depth 2", view_of(CU_RES_VIEW_FORMAT_UINT_1X32, 64, 16, 2));
  with("nothing", view_of(CU_RES_VIEW_FORMAT_UINT_1X32, 0, 0));
  auto view = view_of(CU_RES_VIEW_FORMAT_UINT_1X32, 64, 16);
  view.lastMipmapLevel = 1;
  with("a level that is not there", view);
  view = view_of(CU_RES_VIEW_FORMAT_UINT_1X32, 64, 16);
  view.lastLayer = 1;
  with("a layer that is not there", view);
  view = view_of(CU_RES_VIEW_FORMAT_UINT_1X32, 64, 16);
  view.reserved[0] = 1;
  with("a reserved word", view);
}

GROUP(texture_views_of_parts, InContext) {
  auto normalized = zeroed<Sampling>();
  normalized.flags = CU_TRSF_NORMALIZED_COORDINATES;
  const auto levels = resource_of(make_mipmapped(described(64, 16), 5));
  const auto show_levels = [&](unsigned first, unsigned last) {
    auto view = view_of(CU_RES_VIEW_FORMAT_UINT_1X32, 64, 16);
    view.firstMipmapLevel = first, view.lastMipmapLevel = last;
    show_created("levels " + std::to_string(first) + " to " + std::to_string(last), levels, normalized, &view);
  };
  show_levels(0, 4);
  show_levels(1, 3);
  show_levels(2, 2);
  show_levels(3, 1);
  show_levels(0, 5);
  show_levels(5, 5);
  auto smaller = view_of(CU_RES_VIEW_FORMAT_UINT_1X32, 16, 4);
  smaller.firstMipmapLevel = 2, smaller.lastMipmapLevel = 3;
  show_created("levels 2 to 3, by the size of level 2", levels, normalized, &smaller);

  const auto layers = resource_of(make_array(described(64, 16, 8, CUDA_ARRAY3D_LAYERED)));
  const auto show_layers = [&](std::size_t depth, unsigned first, unsigned last) {
    auto view = view_of(CU_RES_VIEW_FORMAT_UINT_1X32, 64, 16, depth);
    view.firstLayer = first, view.lastLayer = last;
    show_created("depth " + std::to_string(depth) + ", layers " + std::to_string(first) + " to " + std::to_string(last),
                 layers, zeroed<Sampling>(), &view);
  };
  show_layers(8, 0, 7);
  show_layers(8, 2, 5);
  show_layers(4, 2, 5);
  show_layers(0, 2, 5);
  show_layers(8, 5, 2);
  show_layers(8, 0, 8);
}

// The handle outlives its resource. The program must ensure that no kernel uses it.
GROUP(texture_after_its_array, InContext) {
  const CUarray array = make_array(described(64, 16));
  const auto resource = resource_of(array);
  const auto plain = zeroed<Sampling>();
  CUtexObject object = 0;
  auto found = zeroed<Sampling>();
  CU(cuTexObjectCreate)(&object, &resource, &plain, nullptr);
  show("cuArrayDestroy", CU(cuArrayDestroy)(array));
  show("cuTexObjectGetTextureDesc", CU(cuTexObjectGetTextureDesc)(&found, object));
  show("cuTexObjectDestroy", CU(cuTexObjectDestroy)(object));
}

GROUP(texture_without_context, InContext) {
  const auto resource = resource_of(make_array(described(64, 16)));
  const auto plain = zeroed<Sampling>();
  CUtexObject object = 0, second = 0;
  auto found = zeroed<Sampling>();
  CU(cuTexObjectCreate)(&object, &resource, &plain, nullptr);
  CU(cuCtxSetCurrent)(nullptr);
  show("cuTexObjectCreate", CU(cuTexObjectCreate)(&second, &resource, &plain, nullptr));
  show("cuTexObjectGetTextureDesc", CU(cuTexObjectGetTextureDesc)(&found, object));
  show("cuTexObjectDestroy", CU(cuTexObjectDestroy)(object));
}

// Invalid handles. Each group is the last in its process, since a driver may use a handle as an index.
GROUP(texture_number_0, InContext) {
  auto found = zeroed<Sampling>();
  show_guarded("cuTexObjectDestroy 0", [] { return CU(cuTexObjectDestroy)(0); });
  show_guarded("cuTexObjectGetTextureDesc 0", [&] { return CU(cuTexObjectGetTextureDesc)(&found, 0); });
}

GROUP(texture_number_twice, InContext) {
  const auto resource = resource_of(make_array(described(64, 16)));
  const auto plain = zeroed<Sampling>();
  CUtexObject object = 0;
  CU(cuTexObjectCreate)(&object, &resource, &plain, nullptr);
  show("cuTexObjectDestroy", CU(cuTexObjectDestroy)(object));
  show_guarded("cuTexObjectDestroy again", [&] { return CU(cuTexObjectDestroy)(object); });
}

GROUP(texture_number_made_up, InContext) {
  auto found = zeroed<Resource>();
  show_guarded("cuTexObjectGetResourceDesc", [&] { return CU(cuTexObjectGetResourceDesc)(&found, 0x12345678); });
  show_guarded("cuTexObjectDestroy", [] { return CU(cuTexObjectDestroy)(0x12345678); });
}

GROUP(texture_null_array, InContext) {
  CUtexObject object = 0;
  const auto plain = zeroed<Sampling>();
  const auto none = resource_of(CUarray{});
  show_guarded("an array", [&] { return CU(cuTexObjectCreate)(&object, &none, &plain, nullptr); });
}

GROUP(texture_null_mipmapped_array, InContext) {
  CUtexObject object = 0;
  auto normalized = zeroed<Sampling>();
  normalized.flags = CU_TRSF_NORMALIZED_COORDINATES;
  const auto none = resource_of(CUmipmappedArray{});
  show_guarded("a mipmapped array", [&] { return CU(cuTexObjectCreate)(&object, &none, &normalized, nullptr); });
}

}  // namespace
}  // namespace contract
