// Pools and stream-ordered allocation; allocations and frees take effect at once.
#include "tests/fake/graph.h"

namespace fake {
namespace {

void check_location(const char* call, const CUmemLocation& l) {
  touch(&l, sizeof l);
  if (l.type == CU_MEM_LOCATION_TYPE_DEVICE && l.id != 0 && l.id != -1) die("%s: there is no device %d", call, l.id);
}

CUmemoryPool default_pool() {
  if (state->default_pool == nullptr) state->default_pool = issue<CUmemoryPool>(Handle::MemPool);
  return static_cast<CUmemoryPool>(const_cast<void*>(state->default_pool));
}

CUresult find_pool(const char* name, CUmemoryPool* pool, const CUmemLocation* location) {
  Entry entry(name, false, false);
  if (entry.failed()) return entry.result;
  if (location != nullptr) check_location(name, *location);
  if (location != nullptr && location->id != 0) return CUDA_ERROR_INVALID_VALUE;
  return *pool = default_pool(), CUDA_SUCCESS;
}

CUresult with_pool(const char* name, CUmemoryPool pool) {
  Entry entry(name, false, false);
  check(name, Handle::MemPool, pool);
  return entry.result;
}

// The driver would allocate at each launch of the graph, and that memory would not count against a quota.
void refuse_memory_node(const char* call, CUstream stream, bool per_thread) {
  if (capture_of(stream, per_thread) != nullptr) die("%s: a memory node", call);
}

// `pool`: null for the default pool.
template <bool per_thread>
CUresult allocate_in_order(const char* name, CUdeviceptr* at, std::size_t bytes, CUstream stream,
                           CUmemoryPool pool = nullptr) {
  ENTER(name);
  check_stream(name, stream);
  if (pool != nullptr) check(name, Handle::MemPool, pool);
  refuse_memory_node(name, stream, per_thread);
  if (bytes == 0) return *at = 0, CUDA_SUCCESS;
  return allocate_in(pool != nullptr ? pool : default_pool(), at, bytes);
}

template <bool per_thread>
CUresult from_pool(CUdeviceptr* at, std::size_t bytes, CUmemoryPool pool, CUstream stream) {
  return allocate_in_order<per_thread>("cuMemAllocFromPoolAsync", at, bytes, stream, pool);
}

template <bool per_thread>
CUresult free_in_order(CUdeviceptr at, CUstream stream) {
  ENTER("cuMemFreeAsync");
  check_stream("cuMemFreeAsync", stream);
  refuse_memory_node("cuMemFreeAsync", stream, per_thread);
  give_back("cuMemFreeAsync", at);
  return CUDA_SUCCESS;
}

CUresult create(CUmemoryPool* pool, const CUmemPoolProps* props) {
  Entry entry("cuMemPoolCreate", false, false);
  if (entry.failed()) return entry.result;
  touch(props, sizeof *props);
  check_location("cuMemPoolCreate", props->location);
  if (props->win32SecurityAttributes != nullptr) die("cuMemPoolCreate: a pointer that no host sends");
  if (props->location.id != 0) return CUDA_ERROR_INVALID_VALUE;
  *pool = issue<CUmemoryPool>(Handle::MemPool);
  state->pools[*pool] = {};
  return CUDA_SUCCESS;
}

void fill_attributes(host::Driver& t) {
  t.cuMemPoolSetAttribute = [](CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
    touch(value, attribute < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? sizeof(int) : sizeof(cuuint64_t));
    return with_pool("cuMemPoolSetAttribute", pool);
  };
  t.cuMemPoolGetAttribute = [](CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
    const CUresult result = with_pool("cuMemPoolGetAttribute", pool);
    const std::lock_guard lock(state->mutex);
    if (attribute < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
      *static_cast<int*>(value) = 1;
    else
      *static_cast<cuuint64_t*>(value) = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? state->pools[pool].reserved
                                         : attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT   ? state->pools[pool].used
                                                                                           : 0;
    return result;
  };
  t.cuMemPoolSetAccess = [](CUmemoryPool pool, const CUmemAccessDesc* access, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) check_location("cuMemPoolSetAccess", access[i].location);
    return with_pool("cuMemPoolSetAccess", pool);
  };
  t.cuMemPoolGetAccess = [](CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
    check_location("cuMemPoolGetAccess", *location);
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return with_pool("cuMemPoolGetAccess", pool);
  };
}

}  // namespace

void fill_pools(host::Driver& t) {
  t.cuDeviceGetDefaultMemPool = [](CUmemoryPool* pool, CUdevice device) {
    check_device_number("cuDeviceGetDefaultMemPool", device);
    return find_pool("cuDeviceGetDefaultMemPool", pool, nullptr);
  };
  t.cuDeviceGetMemPool = [](CUmemoryPool* pool, CUdevice device) {
    check_device_number("cuDeviceGetMemPool", device);
    return find_pool("cuDeviceGetMemPool", pool, nullptr);
  };
  t.cuDeviceSetMemPool = [](CUdevice device, CUmemoryPool pool) {
    check_device_number("cuDeviceSetMemPool", device);
    return with_pool("cuDeviceSetMemPool", pool);
  };
  t.cuMemGetDefaultMemPool = [](CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType) {
    return find_pool("cuMemGetDefaultMemPool", pool, location);
  };
  t.cuMemGetMemPool = [](CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType) {
    return find_pool("cuMemGetMemPool", pool, location);
  };
  t.cuMemSetMemPool = [](CUmemLocation* location, CUmemAllocationType, CUmemoryPool pool) {
    check_location("cuMemSetMemPool", *location);
    return with_pool("cuMemSetMemPool", pool);
  };
  t.cuMemPoolCreate = create;
  t.cuMemPoolDestroy = [](CUmemoryPool pool) {
    Entry entry("cuMemPoolDestroy", false, false);
    if (entry.failed()) return entry.result;
    check("cuMemPoolDestroy", Handle::MemPool, pool);
    if (pool == state->default_pool) return CUDA_ERROR_INVALID_VALUE;
    return destroy("cuMemPoolDestroy", Handle::MemPool, pool), CUDA_SUCCESS;
  };
  t.cuMemPoolTrimTo = [](CUmemoryPool pool, std::size_t keep) {
    const CUresult result = with_pool("cuMemPoolTrimTo", pool);
    const std::lock_guard lock(state->mutex);
    PoolUse& use = state->pools[pool];
    const std::size_t least = (std::max(use.used, keep) + pool_piece - 1) / pool_piece * pool_piece;
    if (result == CUDA_SUCCESS) use.reserved = std::min(use.reserved, least);
    return result;
  };
  t.cuMemAllocAsync = [](CUdeviceptr* at, std::size_t bytes, CUstream s) {
    return allocate_in_order<false>("cuMemAllocAsync", at, bytes, s);
  };
  t.cuMemAllocAsync_ptsz = [](CUdeviceptr* at, std::size_t bytes, CUstream s) {
    return allocate_in_order<true>("cuMemAllocAsync", at, bytes, s);
  };
  t.cuMemAllocFromPoolAsync = from_pool<false>;
  t.cuMemAllocFromPoolAsync_ptsz = from_pool<true>;
  t.cuMemFreeAsync = free_in_order<false>;
  t.cuMemFreeAsync_ptsz = free_in_order<true>;
  fill_attributes(t);
}

}  // namespace fake
