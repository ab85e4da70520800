// Cases for surface objects.
#include "tests/contract/arrays.h"

namespace contract {
namespace {

void show_created(const std::string& what, const CUDA_RESOURCE_DESC& resource) {
  CUsurfObject object = 0;
  const CUresult created = CU(cuSurfObjectCreate)(&object, &resource);
  show(what, created);
  if (created == CUDA_SUCCESS) CU(cuSurfObjectDestroy)(object);
}

CUDA_RESOURCE_DESC surface(std::size_t width, std::size_t height = 0, std::size_t depth = 0, unsigned flags = 0) {
  return resource_of(make_array(described(width, height, depth, flags | CUDA_ARRAY3D_SURFACE_LDST)));
}

GROUP(surfaces, InContext) {
  show_created("1D", surface(64));
  show_created("2D", surface(64, 16));
  show_created("3D", surface(64, 16, 4));
  show_created("1D layered", surface(64, 0, 4, CUDA_ARRAY3D_LAYERED));
  show_created("2D layered", surface(64, 16, 4, CUDA_ARRAY3D_LAYERED));
  show_created("cube", surface(16, 16, 6, CUDA_ARRAY3D_CUBEMAP));
  show_created("layered cube", surface(16, 16, 12, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED));
  CUarray level = nullptr;
  CU(cuMipmappedArrayGetLevel)(&level, make_mipmapped(described(64, 16, 0, CUDA_ARRAY3D_SURFACE_LDST), 4), 2);
  show_created("a level", resource_of(level));
}

GROUP(surface_descriptions, InContext) {
  const CUarray array = make_array(described(64, 16, 0, CUDA_ARRAY3D_SURFACE_LDST));
  const auto resource = resource_of(array);
  CUsurfObject object = 0, other = 0;
  auto found = zeroed<CUDA_RESOURCE_DESC>();
  show("cuSurfObjectCreate", CU(cuSurfObjectCreate)(&object, &resource));
  show_flag("it is not 0", object != 0);
  CU(cuSurfObjectCreate)(&other, &resource);
  show_flag("another one has another number", object != other);
  show("cuSurfObjectGetResourceDesc", CU(cuSurfObjectGetResourceDesc)(&found, object));
  show("its type", found.resType);
  show_flag("its array", found.res.array.hArray == array);
  show("cuSurfObjectGetResourceDesc null", CU(cuSurfObjectGetResourceDesc)(nullptr, object));
  show("cuSurfObjectDestroy", CU(cuSurfObjectDestroy)(object));
  show("cuArrayDestroy before the other's end", CU(cuArrayDestroy)(array));
  show("cuSurfObjectDestroy of the other", CU(cuSurfObjectDestroy)(other));
}

GROUP(surface_null, InContext) {
  CUsurfObject object = 0;
  const auto resource = surface(64, 16);
  show_guarded("nowhere", [&] { return CU(cuSurfObjectCreate)(nullptr, &resource); });
  show_guarded("no resource", [&] { return CU(cuSurfObjectCreate)(&object, nullptr); });
}

GROUP(surface_errors, InContext) {
  CUdeviceptr a = 0;
  CU(cuMemAlloc_v2)(&a, 1 << 16);
  const auto resource = surface(64, 16);
  show_created("without the flag", resource_of(make_array(described(64, 16))));
  show_created("mipmapped", resource_of(make_mipmapped(described(64, 16, 0, CUDA_ARRAY3D_SURFACE_LDST), 3)));
  auto other = resource;
  other.flags = 1;
  show_created("resource flags 1", other);
  other = resource;
  other.resType = odd<CUresourcetype>(4);
  show_created("resource type 4", other);
  other = zeroed<CUDA_RESOURCE_DESC>();
  other.resType = CU_RESOURCE_TYPE_LINEAR;
  other.res.linear.devPtr = a;
  other.res.linear.format = CU_AD_FORMAT_FLOAT;
  other.res.linear.numChannels = 1;
  other.res.linear.sizeInBytes = 4096;
  show_created("linear memory", other);
  other = zeroed<CUDA_RESOURCE_DESC>();
  other.resType = CU_RESOURCE_TYPE_PITCH2D;
  other.res.pitch2D.devPtr = a;
  other.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
  other.res.pitch2D.numChannels = 1;
  other.res.pitch2D.width = other.res.pitch2D.height = 16;
  other.res.pitch2D.pitchInBytes = 64;
  show_created("rows", other);
}

GROUP(surface_number_0, InContext) {
  auto found = zeroed<CUDA_RESOURCE_DESC>();
  show_guarded("cuSurfObjectDestroy 0", [] { return CU(cuSurfObjectDestroy)(0); });
  show_guarded("cuSurfObjectGetResourceDesc 0", [&] { return CU(cuSurfObjectGetResourceDesc)(&found, 0); });
}

GROUP(surface_number_twice, InContext) {
  const auto resource = surface(64, 16);
  CUsurfObject object = 0;
  CU(cuSurfObjectCreate)(&object, &resource);
  show("cuSurfObjectDestroy", CU(cuSurfObjectDestroy)(object));
  show_guarded("cuSurfObjectDestroy again", [&] { return CU(cuSurfObjectDestroy)(object); });
}

// The handle of a texture is not valid as a surface.
GROUP(surface_number_of_a_texture, InContext) {
  const auto resource = surface(64, 16);
  const auto sampling = zeroed<CUDA_TEXTURE_DESC>();
  CUtexObject texture = 0;
  auto found = zeroed<CUDA_RESOURCE_DESC>();
  CU(cuTexObjectCreate)(&texture, &resource, &sampling, nullptr);
  show_guarded("cuSurfObjectGetResourceDesc", [&] { return CU(cuSurfObjectGetResourceDesc)(&found, texture); });
}

GROUP(surface_null_array, InContext) {
  CUsurfObject object = 0;
  const auto none = resource_of(CUarray{});
  show_guarded("an array", [&] { return CU(cuSurfObjectCreate)(&object, &none); });
}

}  // namespace
}  // namespace contract
