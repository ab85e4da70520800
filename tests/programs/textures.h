// Helpers of the programs that read and write arrays through texture and surface objects.
#pragma once

#include "check.h"

namespace check {

inline cudaResourceDesc resource_of(cudaArray_t array) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  return resource;
}

// The caller destroys the returned objects.
inline cudaTextureObject_t texture_of(const cudaResourceDesc& resource, const cudaTextureDesc& sampling) {
  cudaTextureObject_t texture = 0;
  CHECK_CUDA(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));
  return texture;
}
inline cudaTextureObject_t texture_of(cudaArray_t array, const cudaTextureDesc& sampling) {
  return texture_of(resource_of(array), sampling);
}

inline cudaSurfaceObject_t surface_of(cudaArray_t array) {
  const cudaResourceDesc resource = resource_of(array);
  cudaSurfaceObject_t surface = 0;
  CHECK_CUDA(cudaCreateSurfaceObject(&surface, &resource));
  return surface;
}

}  // namespace check
