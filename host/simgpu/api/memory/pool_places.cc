// Calls on the default and the current memory pool of a location.
#include "host/simgpu/api/memory/pool_places.h"

#include "host/simgpu/api/driver.h"
#include "host/simgpu/api/memory/memory_pool.h"
#include "ring/base/mutex.h"

namespace simgpu {
namespace {

bool is_own_place(const CUmemLocation& location, CUmemAllocationType type) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE && type == CU_MEM_ALLOCATION_TYPE_PINNED;
}

// Only device and NUMA node locations have an id, so the ids of other locations are ignored.
PoolPlace place_of(const CUmemLocation& location, CUmemAllocationType type) {
  const bool numbered = location.type == CU_MEM_LOCATION_TYPE_DEVICE || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
  return {type, location.type, numbered ? location.id : 0};
}

bool is_of_place(const MemoryPool& pool, const CUmemLocation& location, CUmemAllocationType type) {
  return place_of(pool.properties().location, pool.properties().allocType) == place_of(location, type);
}

// Calls `call` with the pools of the location. First use creates these pools, except those of a device, which always
// exist.
template <class F>
CUresult with_place(Driver& driver, const CUmemLocation& location, CUmemAllocationType type, F&& call) {
  if (is_own_place(location, type)) {
    Device* device = driver.device(location.id);
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const ring::RecursiveLock lock(device->mutex);
    return call(device->pools);
  }
  if (!is_kind_of_place(location.type) || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
    return CUDA_ERROR_NOT_SUPPORTED;
  Device* device = device_of_place(driver, location, type);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ring::MutexLock lock(driver.places_mutex);
  PoolsOfPlace& pools = driver.pools_of_places[place_of(location, type)];
  if (pools.standard == nullptr) {
    CUmemPoolProps properties{};
    properties.allocType = type;
    properties.location = location;
    const std::shared_ptr<MemoryPool> pool = make_pool(driver, *device, properties);
    pool->is_default = true;
    pools.standard = pools.current = pool->handle;
  }
  return call(pools);
}

CUresult set_pool(Driver& driver, const CUmemLocation& location, CUmemAllocationType type, CUmemoryPool handle) {
  return with_place(driver, location, type, [&](PoolsOfPlace& pools) {
    const std::shared_ptr<MemoryPool> pool = driver.pools.find(handle);
    if (pool == nullptr || !is_of_place(*pool, location, type)) return CUDA_ERROR_INVALID_VALUE;
    pools.current = handle;
    return CUDA_SUCCESS;
  });
}

CUresult get_pool(CUmemoryPool* out, const CUmemLocation* location, CUmemAllocationType type,
                  CUmemoryPool PoolsOfPlace::*which) {
  return with_driver([&](Driver& driver) {
    if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return with_place(driver, *location, type, [&](const PoolsOfPlace& pools) {
      if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
      *out = pools.*which;
      return CUDA_SUCCESS;
    });
  });
}

CUmemLocation place_of_device(CUdevice device) { return {CU_MEM_LOCATION_TYPE_DEVICE, device}; }

}  // namespace

CUmemoryPool current_pool(Device& device) {
  const ring::RecursiveLock lock(device.mutex);
  return device.pools.current;
}

Device* device_of_place(Driver& driver, const CUmemLocation& location, CUmemAllocationType type) {
  if (type != CU_MEM_ALLOCATION_TYPE_PINNED && type != CU_MEM_ALLOCATION_TYPE_MANAGED) return nullptr;
  Device* const first = driver.devices.front().get();
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: return driver.device(location.id);
    case CU_MEM_LOCATION_TYPE_HOST: return first;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA: return location.id == 0 ? first : nullptr;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
    case CU_MEM_LOCATION_TYPE_NONE: return type == CU_MEM_ALLOCATION_TYPE_MANAGED ? first : nullptr;
    default: return nullptr;
  }
}

void forget_pool(Driver& driver, const MemoryPool& pool) {
  with_place(driver, pool.properties().location, pool.properties().allocType, [&](PoolsOfPlace& pools) {
    if (pools.current == pool.handle) pools.current = pools.standard;
    return CUDA_SUCCESS;
  });
}

}  // namespace simgpu

using namespace simgpu;

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool_out, CUdevice dev) {
  const CUmemLocation place = place_of_device(dev);
  const CUresult known = with_driver(
      [&](Driver& driver) { return driver.device(dev) == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS; });
  if (known != CUDA_SUCCESS) return known;
  return get_pool(pool_out, &place, CU_MEM_ALLOCATION_TYPE_PINNED, &PoolsOfPlace::standard);
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
  const CUmemLocation place = place_of_device(dev);
  return get_pool(pool, &place, CU_MEM_ALLOCATION_TYPE_PINNED, &PoolsOfPlace::current);
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  return with_driver(
      [&](Driver& driver) { return set_pool(driver, place_of_device(dev), CU_MEM_ALLOCATION_TYPE_PINNED, pool); });
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool_out, CUmemLocation* location, CUmemAllocationType type) {
  return get_pool(pool_out, location, type, &PoolsOfPlace::standard);
}

CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return get_pool(pool, location, type, &PoolsOfPlace::current);
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  return with_driver([&](Driver& driver) {
    return location == nullptr ? CUDA_ERROR_INVALID_VALUE : set_pool(driver, *location, type, pool);
  });
}
