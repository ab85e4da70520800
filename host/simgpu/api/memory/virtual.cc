// Calls for reserved address ranges and for mappings in them.
#include "host/simgpu/api/cuda_api.h"

#include <vector>

#include "host/simgpu/api/driver.h"

using namespace simgpu;

namespace {

bool power_of_two(std::size_t value) { return (value & (value - 1)) == 0; }

// Returns true for a location on the host. The host cannot access memory objects of the simulation.
bool is_host(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_HOST || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

// Returns the device of a location; null if the location is not a device.
Device* device_of(Driver& driver, const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? driver.device(location.id) : nullptr;
}

bool valid(CUmemAccess_flags flags) {
  return flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
         flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

}  // namespace

CUresult cuMemAddressReserve(CUdeviceptr* ptr, std::size_t size, std::size_t alignment, CUdeviceptr addr,
                             unsigned long long flags) {
  return with_driver([&](Driver& driver) {
    if (ptr == nullptr || size == 0 || !VirtualMemory::whole(size) || !power_of_two(alignment) ||
        !VirtualMemory::whole(addr) || flags != 0)
      return CUDA_ERROR_INVALID_VALUE;
    Address start = 0;
    const CUresult result = driver.virtual_memory.reserve(&start, size, alignment, addr);
    if (result == CUDA_SUCCESS) *ptr = start;
    return result;
  });
}

CUresult cuMemAddressFree(CUdeviceptr ptr, std::size_t size) {
  return with_driver([&](Driver& driver) { return driver.virtual_memory.free(ptr, size); });
}

CUresult cuMemMap(CUdeviceptr ptr, std::size_t size, std::size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  return with_driver([&](Driver& driver) {
    if (flags != 0 || size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (offset != 0 || !VirtualMemory::whole(size)) return CUDA_ERROR_NOT_SUPPORTED;
    return driver.virtual_memory.map(ptr, size, handle);
  });
}

CUresult cuMemUnmap(CUdeviceptr ptr, std::size_t size) {
  return with_driver([&](Driver& driver) { return driver.virtual_memory.unmap(ptr, size); });
}

CUresult cuMemSetAccess(CUdeviceptr ptr, std::size_t size, const CUmemAccessDesc* desc, std::size_t count) {
  return with_driver([&](Driver& driver) {
    if (desc == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Device*> devices(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (!valid(desc[i].flags)) return CUDA_ERROR_INVALID_VALUE;
      devices[i] = device_of(driver, desc[i].location);
      if (devices[i] == nullptr) return is_host(desc[i].location) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const CUresult error = driver.virtual_memory.set_access(ptr, size, *devices[i], desc[i].flags);
      if (error != CUDA_SUCCESS) return error;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr ptr) {
  return with_driver([&](Driver& driver) {
    if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Device* device = device_of(driver, *location);
    if (device == nullptr && !is_host(*location)) return CUDA_ERROR_INVALID_DEVICE;
    const auto plain = driver.memory.find(ptr);
    if (!plain || plain->kind == MemoryKind::Mapped) return driver.virtual_memory.access(flags, device, ptr);
    *flags = plain->device == device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemMapArrayAsync(CUarrayMapInfo*, unsigned, CUstream) {
  return with_context([](Driver&, Context&) { return CUDA_ERROR_NOT_SUPPORTED; });
}
