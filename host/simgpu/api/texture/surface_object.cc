// Calls for surface objects: numbers through which kernels read and write an array or a level of a mipmapped array.
#include "host/simgpu/api/stream/streams.h"
#include "host/simgpu/api/texture/array.h"
#include "host/simgpu/api/texture/resource.h"

using namespace simgpu;

CUresult cuSurfObjectCreate(CUsurfObject* pSurfObject, const CUDA_RESOURCE_DESC* pResDesc) {
  return with_context([&](Driver& driver, Context& context) {
    if (pSurfObject == nullptr || pResDesc == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (pResDesc->resType != CU_RESOURCE_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
    Surface surface;
    if (const CUresult r = image_of(driver, context, *pResDesc, surface.image); r != CUDA_SUCCESS) return r;
    const auto array = driver.arrays.find(pResDesc->res.array.hArray);
    if (array == nullptr || (array->description.Flags & CUDA_ARRAY3D_SURFACE_LDST) == 0)
      return CUDA_ERROR_INVALID_VALUE;
    *pSurfObject = textures_of(context.device).insert(std::move(surface));
    if (*pSurfObject == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    TextureObjectRecord record{
        .context = driver.current_shared(), .resource = *pResDesc, .texture = {}, .view = {}, .is_surface = true};
    driver.texture_objects.insert(&context.device, *pSurfObject, std::move(record));
    return CUDA_SUCCESS;
  });
}

CUresult cuSurfObjectDestroy(CUsurfObject number) {
  return with_context([&](Driver& driver, Context& context) {
    if (!driver.texture_objects.remove(&context.device, number, true)) return CUDA_SUCCESS;  // already destroyed
    const CUresult fault = wait_for(driver, pending(driver, context));  // kernels in flight may use the number
    textures_of(context.device).remove_surface(number);
    return fault;
  });
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* out, CUsurfObject number) {
  return with_context([&](Driver& driver, Context& context) {
    const auto record = driver.texture_objects.find(&context.device, number, true);
    if (out == nullptr || !record) return CUDA_ERROR_INVALID_VALUE;
    *out = record->resource;
    return CUDA_SUCCESS;
  });
}
