// Arrays, textures and surfaces. Arrays have no content in this driver, and a texture or surface object is a number.
#include <cstring>

#include "tests/fake/state.h"

namespace fake {
namespace {

template <class Description>
CUresult create_array(const char* name, CUarray* array, const Description* d) {
  Entry entry(name);
  touch(d, sizeof *d);
  if (entry.failed()) return entry.result;
  if (d->Width == 0 || d->NumChannels == 0 || d->NumChannels > 4) return CUDA_ERROR_INVALID_VALUE;
  return *array = issue<CUarray>(Handle::Array), CUDA_SUCCESS;
}

// A query of an array or a mipmapped array, which writes all of `answer`.
template <class T>
CUresult ask_array(const char* name, Handle kind, const void* array, T* answer, CUresult result = CUDA_SUCCESS) {
  Entry entry(name);
  if (entry.failed()) return entry.result;
  check(name, kind, array);
  std::memset(answer, 0x5a, sizeof *answer);
  return result;
}

// `which` is at most 2; each part has its own handle.
CUresult find_part(const char* name, CUarray* part, Handle kind, const void* owner, unsigned which) {
  Entry entry(name);
  if (entry.failed()) return entry.result;
  check(name, kind, owner);
  if (which > 2) return CUDA_ERROR_INVALID_VALUE;
  return *part = issue_once<CUarray>(Handle::Array, owner, std::to_string(which)), CUDA_SUCCESS;
}

// Fields that the descriptor's type does not use must be 0, and named objects must exist. For memory, the first byte
// must exist.
void demand_resource(const char* name, const CUDA_RESOURCE_DESC& d) {
  if (d.flags != 0) die("%s: flags %u", name, d.flags);
  CUDA_RESOURCE_DESC used;
  std::memset(&used, 0, sizeof used);
  used.resType = d.resType;
  switch (d.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      check(name, Handle::Array, d.res.array.hArray);
      used.res.array = d.res.array;
      break;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      check(name, Handle::MipmappedArray, d.res.mipmap.hMipmappedArray);
      used.res.mipmap = d.res.mipmap;
      break;
    case CU_RESOURCE_TYPE_LINEAR:
      check_device(name, d.res.linear.devPtr, 1);
      used.res.linear = d.res.linear;
      break;
    case CU_RESOURCE_TYPE_PITCH2D:
      check_device(name, d.res.pitch2D.devPtr, 1);
      used.res.pitch2D = d.res.pitch2D;
      break;
    default: die("%s: a resource of type %d", name, static_cast<int>(d.resType));
  }
  if (std::memcmp(&used.res, &d.res, sizeof d.res) != 0) die("%s: more of a resource than its type has", name);
}

CUresult create_number(const char* name, Handle kind, unsigned long long* number, const CUDA_RESOURCE_DESC* resource) {
  Entry entry(name);
  if (entry.failed()) return entry.result;
  demand_resource(name, *resource);
  const void* handle = issue<const void*>(kind);
  *number = state->numbers.empty() ? 1 : state->numbers.rbegin()->first + 1;
  state->numbers[*number] = handle;
  return CUDA_SUCCESS;
}

CUresult destroy_number(const char* name, Handle kind, unsigned long long number) {
  Entry entry(name);
  if (entry.failed()) return entry.result;
  if (!state->numbers.contains(number)) die("%s: number %llu was never given", name, number);
  destroy(name, kind, state->numbers[number]);
  return CUDA_SUCCESS;
}

}  // namespace

void fill_arrays(host::Driver& t) {
  t.cuArrayCreate_v2 = [](CUarray* array, const CUDA_ARRAY_DESCRIPTOR* d) {
    return create_array("cuArrayCreate_v2", array, d);
  };
  t.cuArray3DCreate_v2 = [](CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* d) {
    return create_array("cuArray3DCreate_v2", array, d);
  };
  t.cuMipmappedArrayCreate = [](CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* d, unsigned) {
    touch(d, sizeof *d);
    return create("cuMipmappedArrayCreate", array, Handle::MipmappedArray);
  };
  t.cuArrayDestroy = [](CUarray array) { return close("cuArrayDestroy", Handle::Array, array); };
  t.cuMipmappedArrayDestroy = [](CUmipmappedArray array) {
    return close("cuMipmappedArrayDestroy", Handle::MipmappedArray, array);
  };
  t.cuArrayGetDescriptor_v2 = [](CUDA_ARRAY_DESCRIPTOR* d, CUarray array) {
    return ask_array("cuArrayGetDescriptor_v2", Handle::Array, array, d);
  };
  t.cuArray3DGetDescriptor_v2 = [](CUDA_ARRAY3D_DESCRIPTOR* d, CUarray array) {
    return ask_array("cuArray3DGetDescriptor_v2", Handle::Array, array, d);
  };
  t.cuArrayGetSparseProperties = [](CUDA_ARRAY_SPARSE_PROPERTIES* p, CUarray array) {
    return ask_array("cuArrayGetSparseProperties", Handle::Array, array, p, CUDA_ERROR_INVALID_VALUE);
  };
  t.cuArrayGetMemoryRequirements = [](CUDA_ARRAY_MEMORY_REQUIREMENTS* m, CUarray array, CUdevice device) {
    check_device_number("cuArrayGetMemoryRequirements", device);
    return ask_array("cuArrayGetMemoryRequirements", Handle::Array, array, m, CUDA_ERROR_INVALID_VALUE);
  };
  t.cuMipmappedArrayGetSparseProperties = [](CUDA_ARRAY_SPARSE_PROPERTIES* p, CUmipmappedArray array) {
    return ask_array("cuMipmappedArrayGetSparseProperties", Handle::MipmappedArray, array, p, CUDA_ERROR_INVALID_VALUE);
  };
  t.cuMipmappedArrayGetMemoryRequirements = [](CUDA_ARRAY_MEMORY_REQUIREMENTS* m, CUmipmappedArray array,
                                               CUdevice device) {
    check_device_number("cuMipmappedArrayGetMemoryRequirements", device);
    return ask_array("cuMipmappedArrayGetMemoryRequirements", Handle::MipmappedArray, array, m,
                     CUDA_ERROR_INVALID_VALUE);
  };
  t.cuMipmappedArrayGetLevel = [](CUarray* level, CUmipmappedArray array, unsigned which) {
    return find_part("cuMipmappedArrayGetLevel", level, Handle::MipmappedArray, array, which);
  };
  t.cuArrayGetPlane = [](CUarray* plane, CUarray array, unsigned which) {
    return find_part("cuArrayGetPlane", plane, Handle::Array, array, which);
  };
  t.cuDeviceGetTexture1DLinearMaxWidth = [](std::size_t* width, CUarray_format, unsigned, CUdevice device) {
    check_device_number("cuDeviceGetTexture1DLinearMaxWidth", device);
    return *width = 1 << 20, CUDA_SUCCESS;
  };
}

void fill_textures(host::Driver& t) {
  t.cuTexObjectCreate = [](CUtexObject* number, const CUDA_RESOURCE_DESC* resource, const CUDA_TEXTURE_DESC* sampling,
                           const CUDA_RESOURCE_VIEW_DESC* view) {
    touch(sampling, sizeof *sampling);
    if (view != nullptr) touch(view, sizeof *view);
    return create_number("cuTexObjectCreate", Handle::Texture, number, resource);
  };
  t.cuTexObjectDestroy = [](CUtexObject number) {
    return destroy_number("cuTexObjectDestroy", Handle::Texture, number);
  };
  t.cuSurfObjectCreate = [](CUsurfObject* number, const CUDA_RESOURCE_DESC* resource) {
    return create_number("cuSurfObjectCreate", Handle::Surface, number, resource);
  };
  t.cuSurfObjectDestroy = [](CUsurfObject number) {
    return destroy_number("cuSurfObjectDestroy", Handle::Surface, number);
  };
}

}  // namespace fake
