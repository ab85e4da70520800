// Calls for texture objects. Kernels hold an object as a number, so an object belongs to a device as well as to a
// context.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "host/simgpu/api/device/device.h"
#include "host/simgpu/api/stream/streams.h"
#include "host/simgpu/api/texture/array.h"
#include "host/simgpu/api/texture/array_format.h"
#include "host/simgpu/api/texture/resource.h"

using namespace simgpu;

namespace {

// An H200 accepts two more flags, which have no name in cuda.h.
constexpr unsigned nameless_flags = 0x0c;
constexpr unsigned known_flags = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                                 CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP | nameless_flags;

bool known(CUfilter_mode mode) { return mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR; }
bool known(CUaddress_mode mode) { return mode >= CU_TR_ADDRESS_MODE_WRAP && mode <= CU_TR_ADDRESS_MODE_BORDER; }

// Returns the descriptor that queries report. For an object that reads integers, queries report no border colour,
// although kernels use it.
CUDA_TEXTURE_DESC kept(const CUDA_TEXTURE_DESC& given) {
  CUDA_TEXTURE_DESC d = given;
  if ((d.flags & CU_TRSF_READ_AS_INTEGER) != 0) std::fill(std::begin(d.borderColor), std::end(d.borderColor), 0.0F);
  return d;
}

// Converts a descriptor to a sampler. Only an object with three dimensions needs a valid third address mode.
CUresult sampler_of(const CUDA_TEXTURE_DESC& d, Geometry geometry, Sampler& out) {
  const bool third = geometry != Geometry::D3 || known(d.addressMode[2]);
  const bool modes = known(d.addressMode[0]) && known(d.addressMode[1]) && third;
  const bool reserved = std::any_of(std::begin(d.reserved), std::end(d.reserved), [](int word) { return word != 0; });
  if (!modes || !known(d.filterMode) || !known(d.mipmapFilterMode) || (d.flags & ~known_flags) != 0 || reserved)
    return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(out.address, d.addressMode, sizeof out.address);
  out.filter = d.filterMode;
  out.mipmap_filter = d.mipmapFilterMode;
  out.normalized = (d.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  out.read_as_integer = (d.flags & CU_TRSF_READ_AS_INTEGER) != 0;
  out.srgb = (d.flags & CU_TRSF_SRGB) != 0;
  out.seamless_cube = (d.flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
  out.trilinear_optimization_off = (d.flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0;
  out.level_bias = d.mipmapLevelBias;
  out.min_level = d.minMipmapLevelClamp;
  out.max_level = d.maxMipmapLevelClamp;
  out.max_anisotropy = d.maxAnisotropy;
  std::memcpy(out.border, d.borderColor, sizeof out.border);
  return CUDA_SUCCESS;
}

bool on_array(const CUDA_RESOURCE_DESC& d) {
  return d.resType == CU_RESOURCE_TYPE_ARRAY || d.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
}

// Checks that the sampler's descriptor and the resource's descriptor may be combined.
bool go_together(const Texture& texture) {
  const bool is_cube = texture.image.geometry == Geometry::Cube || texture.image.geometry == Geometry::CubeLayered;
  return !texture.sampler.seamless_cube || is_cube;
}

template <class F>
CUresult with_record(CUtexObject number, F&& call) {
  return with_context([&](Driver& driver, Context& context) {
    const auto record = driver.texture_objects.find(&context.device, number, false);
    return record ? call(*record) : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace

CUresult cuTexObjectCreate(CUtexObject* pTexObject, const CUDA_RESOURCE_DESC* pResDesc,
                           const CUDA_TEXTURE_DESC* pTexDesc, const CUDA_RESOURCE_VIEW_DESC* pResViewDesc) {
  return with_context([&](Driver& driver, Context& context) {
    if (pTexObject == nullptr || pResDesc == nullptr || pTexDesc == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Texture texture;
    if (const CUresult r = image_of(driver, context, *pResDesc, texture.image); r != CUDA_SUCCESS) return r;
    const CUDA_TEXTURE_DESC sampling = kept(*pTexDesc);
    const Geometry geometry = texture.image.geometry;
    if (const CUresult r = sampler_of(*pTexDesc, geometry, texture.sampler); r != CUDA_SUCCESS) return r;
    if (!go_together(texture)) return CUDA_ERROR_INVALID_VALUE;
    TextureObjectRecord record{
        .context = driver.current_shared(), .resource = *pResDesc, .texture = sampling, .view = {}};
    if (pResViewDesc != nullptr && on_array(*pResDesc)) {  // a view of plain memory has no effect
      const bool is_mipmapped = pResDesc->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
      if (const CUresult r = apply_view(*pResViewDesc, is_mipmapped, texture.image); r != CUDA_SUCCESS) return r;
    }
    if (pResViewDesc != nullptr) record.view = *pResViewDesc;
    *pTexObject = textures_of(context.device).insert(std::move(texture));
    if (*pTexObject == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    driver.texture_objects.insert(&context.device, *pTexObject, std::move(record));
    return CUDA_SUCCESS;
  });
}

CUresult cuTexObjectDestroy(CUtexObject number) {
  return with_context([&](Driver& driver, Context& context) {
    if (!driver.texture_objects.remove(&context.device, number, false)) return CUDA_SUCCESS;  // already destroyed
    const CUresult fault = wait_for(driver, pending(driver, context));  // kernels in flight may use the number
    textures_of(context.device).remove_texture(number);
    return fault;
  });
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* out, CUtexObject number) {
  return with_record(number, [&](const TextureObjectRecord& record) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = record.resource;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* out, CUtexObject number) {
  return with_record(number, [&](const TextureObjectRecord& record) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = record.texture;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* out, CUtexObject number) {
  return with_record(number, [&](const TextureObjectRecord& record) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = record.view.value_or(CUDA_RESOURCE_VIEW_DESC{});
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(std::size_t* out, CUarray_format format, unsigned channels, CUdevice dev) {
  return with_driver([&](Driver& driver) {
    const Device* device = driver.device(dev);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (out == nullptr || check_format(format, channels) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    const auto most = device_attribute(*device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
    *out = static_cast<std::size_t>(most.value_or(0));
    return CUDA_SUCCESS;
  });
}
