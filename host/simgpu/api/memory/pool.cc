// Calls on memory pools.
#include "host/simgpu/api/cuda_api.h"

#include <algorithm>
#include <iterator>

#include "host/simgpu/api/driver.h"
#include "host/simgpu/api/graph/capture.h"
#include "host/simgpu/api/memory/memory_pool.h"
#include "host/simgpu/api/memory/pool_places.h"

using namespace simgpu;

namespace {

// Wraps a call on a pool. A destroyed pool is an invalid argument.
template <class F>
CUresult with_pool(CUmemoryPool handle, F&& call) {
  return with_driver([&](Driver& driver) {
    const std::shared_ptr<MemoryPool> pool = driver.pools.find(handle);
    return pool == nullptr ? CUDA_ERROR_INVALID_VALUE : call(driver, *pool);
  });
}

bool valid(const CUmemPoolProps& p) {
  constexpr unsigned handles = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC;
  const bool reserved = std::any_of(std::begin(p.reserved), std::end(p.reserved), [](auto byte) { return byte != 0; });
  return (static_cast<unsigned>(p.handleTypes) & ~handles) == 0 && !reserved;
}

}  // namespace

CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* poolProps) {
  return with_driver([&](Driver& driver) {
    if (out == nullptr || poolProps == nullptr || !valid(*poolProps)) return CUDA_ERROR_INVALID_VALUE;
    Device* device = device_of_place(driver, poolProps->location, poolProps->allocType);
    if (device == nullptr) {
      const bool managed = poolProps->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
      return managed && !is_kind_of_place(poolProps->location.type) ? CUDA_ERROR_NOT_SUPPORTED
                                                                    : CUDA_ERROR_INVALID_VALUE;
    }
    if (poolProps->maxSize > device->space.capacity()) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = make_pool(driver, *device, *poolProps)->handle;
    return CUDA_SUCCESS;
  });
}

// Allocations of a destroyed pool stay valid.
CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  return with_pool(handle, [&](Driver& driver, MemoryPool& pool) {
    if (pool.is_default) return CUDA_ERROR_INVALID_VALUE;
    forget_pool(driver, pool);
    driver.pools.remove(handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, std::size_t minBytesToKeep) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  return with_pool(handle, [&](Driver&, MemoryPool& pool) {
    pool.trim(minBytesToKeep);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void* value) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  return with_pool(handle, [&](Driver&, MemoryPool& pool) {
    return value == nullptr ? CUDA_ERROR_INVALID_VALUE : pool.attribute(attr, value);
  });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void* value) {
  return with_pool(handle, [&](Driver&, MemoryPool& pool) {
    return value == nullptr ? CUDA_ERROR_INVALID_VALUE : pool.set_attribute(attr, value);
  });
}

// Simulated devices cannot access each other's memory. Only the pool's own device has access, and that access cannot be
// revoked.
CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* map, std::size_t count) {
  return with_pool(handle, [&](Driver& driver, MemoryPool& pool) {
    if (map == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i) {
      if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
      const Device* device = driver.device(map[i].location.id);
      if (device == nullptr || (device != &pool.device() && !pool.on_host())) return CUDA_ERROR_INVALID_DEVICE;
      switch (map[i].flags) {
        case CU_MEM_ACCESS_FLAGS_PROT_READWRITE: break;
        case CU_MEM_ACCESS_FLAGS_PROT_READ: return CUDA_ERROR_NOT_SUPPORTED;
        case CU_MEM_ACCESS_FLAGS_PROT_NONE: return CUDA_ERROR_INVALID_DEVICE;
        default: return CUDA_ERROR_INVALID_VALUE;
      }
    }
    if (count != 0) pool.given_to_device.store(true, std::memory_order_relaxed);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation* location) {
  return with_pool(handle, [&](Driver& driver, MemoryPool& pool) {
    if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    bool reached = false;
    switch (location->type) {
      case CU_MEM_LOCATION_TYPE_DEVICE: {
        const Device* device = driver.device(location->id);
        if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
        reached = device == &pool.device() && pool.is_reached();
        break;
      }
      case CU_MEM_LOCATION_TYPE_HOST:
      case CU_MEM_LOCATION_TYPE_HOST_NUMA: reached = pool.on_host(); break;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = reached ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
  });
}
