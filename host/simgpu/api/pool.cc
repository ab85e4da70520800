// Memory that is allocated and freed in a stream's order, and the pools it comes from. A pool here keeps nothing back:
// freed memory returns to the device, so trimming has nothing to do.
#include "host/simgpu/api/cuda_api.h"

#include <algorithm>
#include <cstring>

#include "host/simgpu/api/memory.h"
#include "host/simgpu/api/streams.h"

using namespace simgpu;

namespace {

CUresult allocate_from(CUdeviceptr* out, std::size_t size, CUmemoryPool pool_handle, CUstream handle) {
  return with_context_of(handle, [&](Driver& driver, Context& context) {
    const std::shared_ptr<Stream> stream = stream_of(driver, context, handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const CUmemoryPool wanted = pool_handle == nullptr ? context.device.current_pool : pool_handle;
    const std::shared_ptr<MemoryPool> pool = driver.pools.find(wanted);
    if (out == nullptr || pool == nullptr || pool->device != &context.device) return CUDA_ERROR_INVALID_VALUE;
    *out = 0;
    if (size == 0) return CUDA_SUCCESS;
    Address start = allocate(driver, context, MemoryKind::Pool, size, wanted);
    if (start == 0) {
      // Earlier frees in this stream may still be to come.
      wait_for(driver, pending(driver, *stream));
      start = allocate(driver, context, MemoryKind::Pool, size, wanted);
    }
    if (start == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    const std::lock_guard lock(pool->mutex);
    pool->used += size;
    pool->used_high = std::max(pool->used_high, pool->used);
    *out = start;
    return CUDA_SUCCESS;
  });
}

template <class F>
CUresult with_pool(CUmemoryPool handle, F&& call) {
  return with_driver([&](Driver& driver) {
    const std::shared_ptr<MemoryPool> pool = driver.pools.find(handle);
    return pool == nullptr ? CUDA_ERROR_INVALID_VALUE : call(driver, *pool);
  });
}

template <class F>
CUresult with_device(CUdevice number, F&& call) {
  return with_driver([&](Driver& driver) {
    Device* device = driver.device(number);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const std::lock_guard lock(device->mutex);
    return call(driver, *device);
  });
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* dptr, std::size_t bytesize, CUstream hStream) {
  return allocate_from(dptr, bytesize, nullptr, hStream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* dptr, std::size_t bytesize, CUmemoryPool pool, CUstream hStream) {
  if (pool == nullptr) return with_context([](Driver&, Context&) { return CUDA_ERROR_INVALID_VALUE; });
  return allocate_from(dptr, bytesize, pool, hStream);
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  return with_context_of(hStream, [&](Driver& driver, Context& context) {
    const std::shared_ptr<Stream> stream = stream_of(driver, context, hStream);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (dptr == 0) return CUDA_SUCCESS;
    const auto wanted = [](const Allocation& a) { return a.kind == MemoryKind::Pool || a.kind == MemoryKind::Device; };
    const auto allocation = driver.memory.take(dptr, wanted);
    if (!allocation) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<MemoryPool> pool =
        allocation->pool == nullptr ? nullptr : driver.pools.find(allocation->pool);
    const auto free_now = [&driver, allocation = *allocation, pool] {
      give_back(driver, allocation);
      if (pool == nullptr) return;
      const std::lock_guard lock(pool->mutex);
      pool->used -= allocation.size;
    };
    post(driver, *stream, free_now, Run::Always);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool_out, CUdevice dev) {
  return with_device(dev, [&](Driver&, Device& device) {
    if (pool_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pool_out = device.default_pool;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
  return with_device(dev, [&](Driver&, Device& device) {
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pool = device.current_pool;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool handle) {
  return with_device(dev, [&](Driver& driver, Device& device) {
    const std::shared_ptr<MemoryPool> pool = driver.pools.find(handle);
    if (pool == nullptr || pool->device != &device) return CUDA_ERROR_INVALID_VALUE;
    device.current_pool = handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* poolProps) {
  return with_driver([&](Driver& driver) {
    if (out == nullptr || poolProps == nullptr || poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
      return CUDA_ERROR_INVALID_VALUE;
    if (poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
    Device* device = driver.device(poolProps->location.id);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    auto pool = std::make_shared<MemoryPool>();
    pool->device = device;
    pool->handle = driver.pools.insert(pool);
    *out = pool->handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  return with_pool(handle, [&](Driver& driver, MemoryPool& pool) {
    if (pool.is_default) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(pool.device->mutex);
    if (pool.device->current_pool == handle) pool.device->current_pool = pool.device->default_pool;
    driver.pools.remove(handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t) {
  return with_pool(pool, [](Driver&, MemoryPool&) { return CUDA_SUCCESS; });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void* value) {
  return with_pool(handle, [&](Driver&, MemoryPool& pool) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(pool.mutex);
    const auto put = [&](auto found) {
      std::memcpy(value, &found, sizeof found);
      return CUDA_SUCCESS;
    };
    switch (attr) {
      case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: return put(pool.reuse[0]);
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: return put(pool.reuse[1]);
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: return put(pool.reuse[2]);
      case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return put(pool.release_threshold);
      case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: return put(pool.used);
      case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return put(pool.used_high);
      default: return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void* value) {
  return with_pool(handle, [&](Driver&, MemoryPool& pool) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(pool.mutex);
    const auto take = [&](auto& field) {
      std::memcpy(&field, value, sizeof field);
      return CUDA_SUCCESS;
    };
    std::uint64_t high = 0;
    switch (attr) {
      case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: return take(pool.reuse[0]);
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: return take(pool.reuse[1]);
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: return take(pool.reuse[2]);
      case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return take(pool.release_threshold);
      case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      case CU_MEMPOOL_ATTR_USED_MEM_HIGH:  // can only be set back
        take(high);
        if (high != 0) return CUDA_ERROR_INVALID_VALUE;
        pool.used_high = pool.used;
        return CUDA_SUCCESS;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
  });
}
