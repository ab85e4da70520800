// cuDeviceGetProperties. The members of its struct are attributes of the device. All functions are pure.
//
// ```cpp
// CUdevprop properties_of(const int* attributes) {  // one value for each attribute
//   return cuabi::device_properties([&](CUdevice_attribute a) { return attributes[a]; });
// }
// ```
#pragma once

#include "ring/api/cuda.h"

namespace cuabi {

// Fills the struct. `get(attribute)` returns the attribute's value.
template <class Get>
CUdevprop device_properties(Get get) {
  return {.maxThreadsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
          .maxThreadsDim = {get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                            get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)},
          .maxGridSize = {get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
                          get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)},
          .sharedMemPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
          .totalConstantMemory = get(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
          .SIMDWidth = get(CU_DEVICE_ATTRIBUTE_WARP_SIZE),
          .memPitch = get(CU_DEVICE_ATTRIBUTE_MAX_PITCH),
          .regsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
          .clockRate = get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
          .textureAlign = get(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)};
}

}  // namespace cuabi
