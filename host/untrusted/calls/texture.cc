// Textures and surfaces. These calls are handwritten because their descriptors are unions with handles and addresses. A
// record has only the members that its type uses; the driver gets these, and zeros for the rest.
#include <cstring>

#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/kept_number.h"

namespace host::calls {
namespace {

using api::TextureResource, api::TextureSampling, api::TextureView;
using Record = api::CreateTextureRecord;

template <class T>
T zeroed() {
  T value;
  std::memset(&value, 0, sizeof value);
  return value;
}

template <class Enum>
Enum enumerator(std::uint32_t number) {
  Enum value;
  static_assert(sizeof value == sizeof number);
  std::memcpy(&value, &number, sizeof value);  // the guest's number may be outside the enumeration
  return value;
}

float number(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

CUDA_RESOURCE_DESC resource_of(const DecodedRequest<Record>& t) {
  const TextureResource& from = t.record.resource;
  auto to = zeroed<CUDA_RESOURCE_DESC>();
  to.resType = enumerator<CUresourcetype>(from.type);
  switch (to.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      to.res.array.hArray = t.handle<CUarray>(Record::of_resource(&TextureResource::array));
      break;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      to.res.mipmap.hMipmappedArray =
          t.handle<CUmipmappedArray>(Record::of_resource(&TextureResource::mipmapped_array));
      break;
    case CU_RESOURCE_TYPE_LINEAR:
      to.res.linear.devPtr = from.address, to.res.linear.sizeInBytes = from.width;
      to.res.linear.format = enumerator<CUarray_format>(from.format), to.res.linear.numChannels = from.channels;
      break;
    case CU_RESOURCE_TYPE_PITCH2D:
      to.res.pitch2D.devPtr = from.address, to.res.pitch2D.pitchInBytes = from.pitch;
      to.res.pitch2D.width = from.width, to.res.pitch2D.height = from.height;
      to.res.pitch2D.format = enumerator<CUarray_format>(from.format), to.res.pitch2D.numChannels = from.channels;
      break;
  }
  return to;
}

CUDA_TEXTURE_DESC sampling_of(const TextureSampling& from) {
  auto to = zeroed<CUDA_TEXTURE_DESC>();
  for (int i = 0; i < 3; ++i) to.addressMode[i] = enumerator<CUaddress_mode>(from.address_mode[i]);
  to.filterMode = enumerator<CUfilter_mode>(from.filter_mode);
  to.flags = from.flags;
  to.maxAnisotropy = from.max_anisotropy;
  to.mipmapFilterMode = enumerator<CUfilter_mode>(from.mipmap_filter_mode);
  to.mipmapLevelBias = number(from.level_bias);
  to.minMipmapLevelClamp = number(from.min_level), to.maxMipmapLevelClamp = number(from.max_level);
  to.borderColor[0] = number(from.red), to.borderColor[1] = number(from.green);
  to.borderColor[2] = number(from.blue), to.borderColor[3] = number(from.alpha);
  return to;
}

CUDA_RESOURCE_VIEW_DESC view_of(const TextureView& from) {
  auto to = zeroed<CUDA_RESOURCE_VIEW_DESC>();
  to.format = enumerator<CUresourceViewFormat>(from.format);
  to.width = from.width, to.height = from.height, to.depth = from.depth;
  to.firstMipmapLevel = from.first_level, to.lastMipmapLevel = from.last_level;
  to.firstLayer = from.first_layer, to.lastLayer = from.last_layer;
  return to;
}

// Returns false for a descriptor without the handle that its type needs. Our library never sends such a descriptor.
bool names_its_resource(const TextureResource& r) {
  switch (r.type) {
    case CU_RESOURCE_TYPE_ARRAY: return r.array != 0;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: return r.mipmapped_array != 0;
    default: return r.address != 0;
  }
}

template <class A>
CUresult answer(A& a, CUresult result, unsigned long long object) {
  if (result == CUDA_SUCCESS && !a.put(keep_number(object))) return a.request.broken();
  return a.answer(result, {.number = object});
}

}  // namespace

CUresult cuTexObjectCreate(call_of::cuTexObjectCreate& a) {
  if (!names_its_resource(a.record.resource)) return a.request.broken();
  const CUDA_RESOURCE_DESC resource = resource_of(a);
  const CUDA_TEXTURE_DESC sampling = sampling_of(a.record.sampling);
  const CUDA_RESOURCE_VIEW_DESC view = view_of(a.record.view);
  CUtexObject object = 0;
  const CUresult result = a.call(&object, &resource, &sampling, a.record.has_view != 0 ? &view : nullptr);
  return answer(a, result, object);
}

CUresult cuSurfObjectCreate(call_of::cuSurfObjectCreate& a) {
  if (a.record.array == 0) return a.request.broken();
  auto resource = zeroed<CUDA_RESOURCE_DESC>();
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = a.handle<CUarray>(&api::CreateSurfaceRecord::array);
  CUsurfObject object = 0;
  const CUresult result = a.call(&object, &resource);
  return answer(a, result, object);
}

}  // namespace host::calls
