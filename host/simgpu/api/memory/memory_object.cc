// Calls on memory objects: physical memory that has no address until it is mapped.
#include "host/simgpu/api/cuda_api.h"

#include <algorithm>
#include <iterator>

#include "host/simgpu/api/driver.h"

using namespace simgpu;

namespace {

// Checks a description of memory and selects the device that provides the memory. The first device provides host
// memory.
CUresult judge(Driver& driver, const CUmemAllocationProp& p, Device** out) {
  const auto& reserved = p.allocFlags.reserved;
  constexpr unsigned of_windows = CU_MEM_HANDLE_TYPE_WIN32 | CU_MEM_HANDLE_TYPE_WIN32_KMT;
  const auto handles = static_cast<unsigned>(p.requestedHandleTypes);
  if (p.type != CU_MEM_ALLOCATION_TYPE_PINNED || (handles & of_windows) != 0 ||
      p.allocFlags.compressionType > CU_MEM_ALLOCATION_COMP_GENERIC ||
      std::any_of(std::begin(reserved), std::end(reserved), [](auto byte) { return byte != 0; }))
    return CUDA_ERROR_INVALID_VALUE;
  // fabric handles need NVIDIA's IMEX daemon, which the simulation lacks
  if ((handles & CU_MEM_HANDLE_TYPE_FABRIC) != 0) return CUDA_ERROR_NOT_PERMITTED;
  switch (p.location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      *out = driver.device(p.location.id);
      return *out == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST: *out = driver.devices.front().get(); return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      *out = driver.devices.front().get();
      return p.location.id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t size, const CUmemAllocationProp* prop,
                     unsigned long long flags) {
  return with_driver([&](Driver& driver) {
    if (handle == nullptr || prop == nullptr || size == 0 || !VirtualMemory::whole(size) || flags != 0)
      return CUDA_ERROR_INVALID_VALUE;
    Device* device = nullptr;
    if (const CUresult error = judge(driver, *prop, &device); error != CUDA_SUCCESS) return error;
    return driver.virtual_memory.create(handle, size, *prop, *device);
  });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return with_driver([&](Driver& driver) { return driver.virtual_memory.release(handle); });
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* addr) {
  return with_driver([&](Driver& driver) {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.virtual_memory.retain(handle, reinterpret_cast<Address>(addr));
  });
}

// All types of memory have the same granularity.
CUresult cuMemGetAllocationGranularity(std::size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags option) {
  return with_driver([&](Driver&) {
    const bool known = option == CU_MEM_ALLOC_GRANULARITY_MINIMUM || option == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
    if (granularity == nullptr || prop == nullptr || !known) return CUDA_ERROR_INVALID_VALUE;
    *granularity = VirtualMemory::granularity;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop, CUmemGenericAllocationHandle handle) {
  return with_driver([&](Driver& driver) {
    return prop == nullptr ? CUDA_ERROR_INVALID_VALUE : driver.virtual_memory.properties(prop, handle);
  });
}

// The simulation does not support sharing memory with other processes.
CUresult cuMemExportToShareableHandle(void*, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
                                      unsigned long long) {
  return with_driver([](Driver&) { return CUDA_ERROR_NOT_SUPPORTED; });
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle*, void*, CUmemAllocationHandleType) {
  return with_driver([](Driver&) { return CUDA_ERROR_NOT_SUPPORTED; });
}
