// Cases for stream-ordered memory allocation and its pools.
#include "tests/contract/suite.h"

#include <functional>
#include <string>

namespace contract {
namespace {

GROUP(pools, InContext) {
  CUmemoryPool pool = nullptr, same = nullptr;
  CUdeviceptr a = 0;
  unsigned long long value = 0;
  show("default pool", CU(cuDeviceGetDefaultMemPool)(&pool, device));
  show("current pool", CU(cuDeviceGetMemPool)(&same, device));
  show("they are one", pool == same ? 1 : 0);
  show("default pool of device 99", CU(cuDeviceGetDefaultMemPool)(&pool, 99));
  show("destroying the default pool", CU(cuMemPoolDestroy)(pool));
  show("pool attribute", CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
  show("release threshold", static_cast<long long>(value));
  show("pool attribute 99", CU(cuMemPoolGetAttribute)(pool, odd<CUmemPool_attribute>(99), &value));
  show("pool attribute null", CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nullptr));
  show("cuMemAllocAsync", CU(cuMemAllocAsync)(&a, 100, nullptr));
  show("cuMemAllocAsync 0", CU(cuMemAllocAsync)(&a, 0, nullptr));
  show("cuMemAllocAsync null", CU(cuMemAllocAsync)(nullptr, 100, nullptr));
  show("cuMemAllocAsync absurd", CU(cuMemAllocAsync)(&a, std::size_t{1} << 60, nullptr));
  CU(cuMemAllocAsync)(&a, 100, nullptr);
  show("cuMemFreeAsync", CU(cuMemFreeAsync)(a, nullptr));
  show("cuMemFreeAsync twice", CU(cuMemFreeAsync)(a, nullptr));
  show("cuMemFreeAsync null", CU(cuMemFreeAsync)(0, nullptr));
  CU(cuMemAllocAsync)(&a, 100, nullptr);
  show("cuMemFree of pool memory", CU(cuMemFree_v2)(a));
  CU(cuMemAlloc_v2)(&a, 100);
  show("cuMemFreeAsync of plain memory", CU(cuMemFreeAsync)(a, nullptr));
  show("after those", CU(cuCtxSynchronize)());
}

constexpr std::size_t mib = 1 << 20;

CUmemPoolProps device_pool() {
  CUmemPoolProps p{};
  p.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return p;
}

CUmemoryPool new_pool(std::size_t most = 0) {
  CUmemPoolProps p = device_pool();
  p.maxSize = most;
  CUmemoryPool pool = nullptr;
  CU(cuMemPoolCreate)(&pool, &p);
  return pool;
}

CUmemoryPool default_pool() {
  CUmemoryPool pool = nullptr;
  CU(cuDeviceGetDefaultMemPool)(&pool, device);
  return pool;
}

unsigned long long value_of(CUmemoryPool pool, int attribute) {
  unsigned long long value = 0;
  CU(cuMemPoolGetAttribute)(pool, odd<CUmemPool_attribute>(attribute), &value);
  return value;
}

// Attributes 1 to 3 are ints. The amount of reserved memory depends on the driver.
void show_attributes(const std::string& what, CUmemoryPool pool) {
  for (const int i : {1, 2, 3, 4, 7, 8})
    show(what + ", attribute " + std::to_string(i), static_cast<long long>(value_of(pool, i)));
}

CUresult set(CUmemoryPool pool, int attribute, unsigned long long value) {
  return CU(cuMemPoolSetAttribute)(pool, odd<CUmemPool_attribute>(attribute), &value);
}

GROUP(pool_attributes, InContext) {
  CUmemoryPool pool = default_pool();
  unsigned long long value = 0;
  for (const int i : {-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 20})
    show("attribute " + std::to_string(i), CU(cuMemPoolGetAttribute)(pool, odd<CUmemPool_attribute>(i), &value));
  show_attributes("default pool", pool);
  show_attributes("new pool", new_pool());
  show("attribute of no pool", CU(cuMemPoolGetAttribute)(nullptr, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
  CUdeviceptr a = 0, b = 0;
  CU(cuMemAllocAsync)(&a, 100, nullptr);
  CU(cuMemAllocAsync)(&b, 1000, nullptr);
  show("used of 100 and 1000", static_cast<long long>(value_of(pool, 7)));
  show_flag("reserved is no less", value_of(pool, 5) >= 1100);
  show_flag("and in pages of 2 MiB", value_of(pool, 5) % (2 * mib) == 0);
  CU(cuMemFreeAsync)(a, nullptr);
  CU(cuStreamSynchronize)(nullptr);
  show("used after one free", static_cast<long long>(value_of(pool, 7)));
  show("most that was used", static_cast<long long>(value_of(pool, 8)));
  CU(cuMemFreeAsync)(b, nullptr);
  CU(cuStreamSynchronize)(nullptr);
  show("used after both", static_cast<long long>(value_of(pool, 7)));
  show("reserved after both and a wait", static_cast<long long>(value_of(pool, 5)));
  show_flag("most that was reserved", value_of(pool, 6) >= 1100);
}

GROUP(pool_attributes_set, InContext) {
  CUmemoryPool pool = new_pool();
  for (int i = 0; i <= 9; ++i)
    for (const unsigned long long value : {0ULL, 1ULL, 12345ULL})
      show("setting attribute " + std::to_string(i) + " to " + std::to_string(value), set(pool, i, value));
  show_attributes("new pool, set", pool);
  set(pool, 4, ~0ULL);
  show_flag("a threshold of all bits", value_of(pool, 4) == ~0ULL);
  int negative = -5;
  show("setting attribute 1 to -5", CU(cuMemPoolSetAttribute)(pool, odd<CUmemPool_attribute>(1), &negative));
  show("it is", static_cast<long long>(value_of(pool, 1)));
  show("setting attribute 99", set(pool, 99, 0));
  show("setting an attribute of no pool", set(nullptr, 4, 0));
}

GROUP(pool_high_water, InContext) {
  CUmemoryPool pool = new_pool();
  CUdeviceptr a = 0, b = 0;
  CU(cuMemAllocFromPoolAsync)(&a, 3000, pool, nullptr);
  CU(cuMemAllocFromPoolAsync)(&b, 2000, pool, nullptr);
  CU(cuMemFreeAsync)(b, nullptr);
  CU(cuStreamSynchronize)(nullptr);
  show("used", static_cast<long long>(value_of(pool, 7)));
  show("most that was used", static_cast<long long>(value_of(pool, 8)));
  show("setting that to 0", set(pool, 8, 0));
  show("it is", static_cast<long long>(value_of(pool, 8)));
  show("setting the most that was reserved to 0", set(pool, 6, 0));
  show_flag("it is what is reserved", value_of(pool, 6) == value_of(pool, 5));
  CU(cuMemAllocFromPoolAsync)(&b, 100, pool, nullptr);
  show("most that was used after 100 more", static_cast<long long>(value_of(pool, 8)));
}

// A pool with a release threshold keeps its memory.
GROUP(pool_threshold, InContext) {
  CUmemoryPool pool = new_pool();
  CUdeviceptr a = 0;
  show("threshold", set(pool, 4, ~0ULL));
  CU(cuMemAllocFromPoolAsync)(&a, mib, pool, nullptr);
  CU(cuMemFreeAsync)(a, nullptr);
  CU(cuCtxSynchronize)();
  show_flag("something is kept", value_of(pool, 5) != 0);
  show("nothing is used", static_cast<long long>(value_of(pool, 7)));
  show("cuMemPoolTrimTo 1 GiB", CU(cuMemPoolTrimTo)(pool, 1024 * mib));
  show_flag("something is still kept", value_of(pool, 5) != 0);
  show("cuMemPoolTrimTo 0", CU(cuMemPoolTrimTo)(pool, 0));
  show("kept", static_cast<long long>(value_of(pool, 5)));
  CU(cuMemAllocFromPoolAsync)(&a, mib, pool, nullptr);
  show("cuMemPoolTrimTo 0 of a pool in use", CU(cuMemPoolTrimTo)(pool, 0));
  show_flag("something is kept then", value_of(pool, 5) >= mib);
  show("cuMemPoolTrimTo of no pool", CU(cuMemPoolTrimTo)(nullptr, 0));
}

void show_created(const std::string& what, const CUmemPoolProps& p) {
  CUmemoryPool pool = nullptr;
  show("cuMemPoolCreate, " + what, CU(cuMemPoolCreate)(&pool, &p));
  if (pool != nullptr) CU(cuMemPoolDestroy)(pool);
}

GROUP(pool_properties, InContext) {
  CUmemPoolProps p = device_pool();
  show_created("of a device", p);
  for (const int number : {99, -1}) {
    p.location.id = number;
    show_created("of device " + std::to_string(number), p);
  }
  for (const int number : {99, -1}) {
    p.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, number};
    show_created("of host node " + std::to_string(number), p);
  }
  for (const int place : {0, 2, 3, 4, 5, 99}) {
    p = device_pool(), p.location.type = odd<CUmemLocationType>(place);
    show_created("place " + std::to_string(place), p);
    p.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
    show_created("managed, place " + std::to_string(place), p);
  }
  for (const int type : {0, 2, 3}) {
    p = device_pool(), p.allocType = odd<CUmemAllocationType>(type);
    show_created("type " + std::to_string(type), p);
  }
  for (const int handles : {1, 2, 4, 8, 9, 16, 32}) {
    p = device_pool(), p.handleTypes = odd<CUmemAllocationHandleType>(handles);
    show_created("handle types " + std::to_string(handles), p);
  }
  for (const unsigned usage : {1U, 2U, 4U, 0xffffU}) {
    p = device_pool(), p.usage = static_cast<unsigned short>(usage);
    show_created("usage " + std::to_string(usage), p);
  }
  p = device_pool(), p.reserved[0] = 1;
  show_created("first reserved byte", p);
  p = device_pool(), p.reserved[53] = 1;
  show_created("last reserved byte", p);
  p = device_pool(), p.win32SecurityAttributes = &p;
  show_created("Windows attributes", p);
  p = device_pool(), p.maxSize = 1;
  show_created("at most 1 byte", p);
  p = device_pool(), p.maxSize = std::size_t{1} << 60;
  show_created("at most 2^60", p);
  CUmemoryPool pool = nullptr;
  p = device_pool();
  show("cuMemPoolCreate null", CU(cuMemPoolCreate)(nullptr, &p));
  show("cuMemPoolDestroy of no pool", CU(cuMemPoolDestroy)(nullptr));
  show("cuMemPoolCreate without properties", CU(cuMemPoolCreate)(&pool, nullptr));
}

GROUP(pool_limit, InContext) {
  CUmemoryPool pool = new_pool(32 * mib);
  CUdeviceptr a = 0, b = 0;
  show("33 of 32 MiB", CU(cuMemAllocFromPoolAsync)(&a, 33 * mib, pool, nullptr));
  show("32 MiB", CU(cuMemAllocFromPoolAsync)(&a, 32 * mib, pool, nullptr));
  show("1 byte more", CU(cuMemAllocFromPoolAsync)(&b, 1, pool, nullptr));
  show("cuMemFreeAsync", CU(cuMemFreeAsync)(a, nullptr));
  show("1 byte then", CU(cuMemAllocFromPoolAsync)(&b, 1, pool, nullptr));
  show("cuMemAllocFromPoolAsync 0", CU(cuMemAllocFromPoolAsync)(&a, 0, pool, nullptr));
  show_flag("that gives null", a == 0);
  show("cuMemAllocFromPoolAsync null", CU(cuMemAllocFromPoolAsync)(nullptr, 16, pool, nullptr));
  show("cuMemAllocFromPoolAsync of no pool", CU(cuMemAllocFromPoolAsync)(&a, 16, nullptr, nullptr));
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(pool_access, InContext) {
  CUmemoryPool pool = new_pool();
  CUmemAccess_flags flags{};
  CUmemLocation there{CU_MEM_LOCATION_TYPE_DEVICE, device};
  CUmemAccessDesc access{there, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  show("cuMemPoolGetAccess", CU(cuMemPoolGetAccess)(&flags, pool, &there));
  show("flags", flags);
  show("cuMemPoolSetAccess", CU(cuMemPoolSetAccess)(pool, &access, 1));
  for (const int given : {0, 1, 2, 4}) {
    access.flags = odd<CUmemAccess_flags>(given);
    show("cuMemPoolSetAccess flags " + std::to_string(given), CU(cuMemPoolSetAccess)(pool, &access, 1));
  }
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  show("cuMemPoolSetAccess count 0", CU(cuMemPoolSetAccess)(pool, &access, 0));
  for (const int place : {0, 2, 3, 4}) {
    there.type = access.location.type = odd<CUmemLocationType>(place);
    show("cuMemPoolSetAccess, place " + std::to_string(place), CU(cuMemPoolSetAccess)(pool, &access, 1));
    show("cuMemPoolGetAccess, place " + std::to_string(place), CU(cuMemPoolGetAccess)(&flags, pool, &there));
  }
  there = access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 99};
  show("cuMemPoolSetAccess, device 99", CU(cuMemPoolSetAccess)(pool, &access, 1));
  show("cuMemPoolGetAccess, device 99", CU(cuMemPoolGetAccess)(&flags, pool, &there));
  there.id = device;
  show("cuMemPoolGetAccess of the default pool", CU(cuMemPoolGetAccess)(&flags, default_pool(), &there));
  show("flags", flags);
  show("cuMemPoolGetAccess of no pool", CU(cuMemPoolGetAccess)(&flags, nullptr, &there));
  show("cuMemPoolSetAccess of no pool", CU(cuMemPoolSetAccess)(nullptr, &access, 1));
  show("cuMemPoolSetAccess count 0, null", CU(cuMemPoolSetAccess)(pool, nullptr, 0));
}

// Frees the memory of a pool, and queries the memory afterwards.
GROUP(pool_frees, InContext) {
  CUmemoryPool pool = new_pool();
  CUstream one = nullptr, other = nullptr;
  CUdeviceptr a = 0, start = 0;
  std::size_t size = 0;
  unsigned type = 9, word = 7;
  CU(cuStreamCreate)(&one, CU_STREAM_NON_BLOCKING);
  CU(cuStreamCreate)(&other, CU_STREAM_NON_BLOCKING);
  CU(cuMemAllocFromPoolAsync)(&a, 1000, pool, one);
  show("cuMemGetAddressRange", CU(cuMemGetAddressRange_v2)(&start, &size, a + 999));
  show("its start", static_cast<long long>(start - a));
  show("its size", static_cast<long long>(size));
  show("cuMemFreeAsync inside", CU(cuMemFreeAsync)(a + 256, one));
  show("cuMemFreeHost of it", CU(cuMemFreeHost)(reinterpret_cast<void*>(a)));
  show("cuMemFreeAsync on another stream", CU(cuMemFreeAsync)(a, other));
  show("cuMemFreeAsync again", CU(cuMemFreeAsync)(a, other));
  show("its type then", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
  show("cuMemGetAddressRange then", CU(cuMemGetAddressRange_v2)(&start, &size, a));
  show("a fill of it then", CU(cuMemsetD8_v2)(a, 0, 16));
  show("a copy to it then", CU(cuMemcpyHtoD_v2)(a, &word, 4));
  show("a copy from it then", CU(cuMemcpyDtoHAsync_v2)(&word, a, 4, other));
  CU(cuMemAllocFromPoolAsync)(&a, 1000, pool, one);
  show("cuMemFree", CU(cuMemFree_v2)(a));
  show("cuMemFreeAsync after it", CU(cuMemFreeAsync)(a, one));
  CU(cuMemAllocAsync)(&a, 1000, one);
  show("cuStreamDestroy of the stream of an allocation", CU(cuStreamDestroy_v2)(one));
  show("cuMemFreeAsync on the other", CU(cuMemFreeAsync)(a, other));
  int on_the_stack = 0;
  void* pinned = nullptr;
  CU(cuMemHostAlloc)(&pinned, 100, 0);
  show("cuMemFreeAsync of the stack", CU(cuMemFreeAsync)(address_of(&on_the_stack), other));
  show("cuMemFreeAsync of pinned memory", CU(cuMemFreeAsync)(address_of(pinned), other));
  show("cuMemFreeAsync of 1", CU(cuMemFreeAsync)(1, other));
  show("after those", CU(cuCtxSynchronize)());
}

// Work that precedes a free can access the memory, and a later allocation reuses the memory.
GROUP(pool_order, InContext) {
  CUmemoryPool pool = new_pool();
  CUfunction store = function_of(load_module(), "store");
  CUstream one = nullptr, other = nullptr;
  CUdeviceptr a = 0, b = 0, c = 0;
  unsigned word = 0, value = 1;
  CU(cuStreamCreate)(&one, CU_STREAM_NON_BLOCKING);
  CU(cuStreamCreate)(&other, CU_STREAM_NON_BLOCKING);
  const auto put = [&](CUdeviceptr at, CUstream stream) {
    void* parameters[] = {&at, &value};
    return CU(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
  };
  CU(cuMemAllocFromPoolAsync)(&a, 1000, pool, one);
  show("a kernel before the free", put(a, one));
  show("cuMemFreeAsync", CU(cuMemFreeAsync)(a, one));
  CU(cuMemAllocFromPoolAsync)(&b, 1000, pool, one);
  show_flag("the same address on that stream", a == b);
  value = 2;
  show("a kernel on it", put(b, one));
  show("a copy of it", CU(cuMemcpyDtoHAsync_v2)(&word, b, 4, one));
  show("cuStreamSynchronize", CU(cuStreamSynchronize)(one));
  show("the word", word);
  show("cuMemFreeAsync", CU(cuMemFreeAsync)(b, one));
  CU(cuMemAllocFromPoolAsync)(&c, 1000, pool, other);
  show_flag("the same address on another stream", c == b);
  value = 3;
  show("a kernel there", put(c, other));
  show("a copy of that", CU(cuMemcpyDtoHAsync_v2)(&word, c, 4, other));
  show("cuStreamSynchronize", CU(cuStreamSynchronize)(other));
  show("the word", word);
  show("cuMemFreeAsync", CU(cuMemFreeAsync)(c, other));
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(pool_of_the_thread, InContext) {
  CUdeviceptr a = 0, b = 0;
  unsigned word = 7;
  show("cuMemAllocAsync_ptsz", CU(cuMemAllocAsync_ptsz)(&a, 100, nullptr));
  show("cuMemAllocFromPoolAsync_ptsz", CU(cuMemAllocFromPoolAsync_ptsz)(&b, 100, default_pool(), nullptr));
  show("cuMemsetD32Async_ptsz", CU(cuMemsetD32Async_ptsz)(a, 5, 4, nullptr));
  show("cuMemcpyDtoH", CU(cuMemcpyDtoH_v2_ptds)(&word, a, 4));
  show("the word", word);
  show("cuMemFreeAsync_ptsz", CU(cuMemFreeAsync_ptsz)(a, nullptr));
  show("cuMemFreeAsync_ptsz of the other", CU(cuMemFreeAsync_ptsz)(b, CU_STREAM_LEGACY));
  show("cuMemFreeAsync_ptsz twice", CU(cuMemFreeAsync_ptsz)(b, nullptr));
  show("cuMemAllocAsync_ptsz null", CU(cuMemAllocAsync_ptsz)(nullptr, 100, nullptr));
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(pool_pointers, InContext) {
  CUmemoryPool pool = new_pool();
  CUdeviceptr a = 0, start = 0;
  std::size_t size = 0;
  CUmemoryPool known = nullptr;
  CU(cuMemAllocFromPoolAsync)(&a, 1000, pool, nullptr);
  for (int i = 1; i <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE; ++i) {
    unsigned long long value[8] = {};
    show("attribute " + std::to_string(i), CU(cuPointerGetAttribute)(value, odd<CUpointer_attribute>(i), a + 8));
    const bool plain = i == 2 || i == 8 || i == 9 || i == 10 || i == 12 || i == 13 || i == 14 || i == 16 || i == 21;
    if (plain) show("it is", static_cast<long long>(value[0]));
  }
  CU(cuPointerGetAttribute)(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, a + 8);
  show_flag("its range starts at the allocation", start == a);
  CU(cuPointerGetAttribute)(&known, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a + 8);
  show_flag("its pool is that", known == pool);
  CU(cuPointerGetAttribute)(&size, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, a + 8);
  show_flag("its mapping is larger", size > 1000);
  CU(cuPointerGetAttribute)(&start, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, a + 8);
  show_flag("and begins no later", start <= a);
  show("destroying the pool", CU(cuMemPoolDestroy)(pool));
  show("its pool then", CU(cuPointerGetAttribute)(&known, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a + 8));
  show_flag("it is that still", known == pool);
}

GROUP(pool_destroyed, InContext) {
  CUmemoryPool pool = new_pool(), current = nullptr;
  CUdeviceptr a = 0, b = 0;
  unsigned word = 0;
  unsigned long long value = 0;
  CUmemAccess_flags flags{};
  CUmemLocation there{CU_MEM_LOCATION_TYPE_DEVICE, device};
  const CUmemAccessDesc access{there, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  show("cuDeviceSetMemPool", CU(cuDeviceSetMemPool)(device, pool));
  show("cuDeviceGetMemPool", CU(cuDeviceGetMemPool)(&current, device));
  show_flag("it is that", current == pool);
  CU(cuMemAllocAsync)(&a, 1000, nullptr);
  show("used of it", static_cast<long long>(value_of(pool, 7)));
  show("cuMemPoolDestroy", CU(cuMemPoolDestroy)(pool));
  CU(cuDeviceGetMemPool)(&current, device);
  show_flag("the device's pool is the default one", current == default_pool());
  show("a fill of the allocation", CU(cuMemsetD32_v2)(a, 9, 4));
  show("a copy of it", CU(cuMemcpyDtoH_v2)(&word, a, 4));
  show("the word", word);
  show("cuMemFreeAsync of it", CU(cuMemFreeAsync)(a, nullptr));
  show("after that", CU(cuCtxSynchronize)());
  show("cuMemAllocFromPoolAsync of the destroyed", CU(cuMemAllocFromPoolAsync)(&b, 1000, pool, nullptr));
  show("cuMemPoolTrimTo of it", CU(cuMemPoolTrimTo)(pool, 0));
  show("cuMemPoolGetAttribute of it", CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
  show("cuMemPoolSetAttribute of it", set(pool, 4, 0));
  show("cuMemPoolGetAccess of it", CU(cuMemPoolGetAccess)(&flags, pool, &there));
  show("cuMemPoolSetAccess of it", CU(cuMemPoolSetAccess)(pool, &access, 1));
  show("cuDeviceSetMemPool of it", CU(cuDeviceSetMemPool)(device, pool));
  show("cuMemPoolDestroy twice", CU(cuMemPoolDestroy)(pool));
}

GROUP(pool_of_a_device, InContext) {
  CUmemoryPool pool = nullptr;
  show("cuDeviceGetMemPool of device 99", CU(cuDeviceGetMemPool)(&pool, 99));
  show("cuDeviceSetMemPool of device 99", CU(cuDeviceSetMemPool)(99, default_pool()));
  show("cuDeviceSetMemPool null", CU(cuDeviceSetMemPool)(device, nullptr));
  show("cuDeviceSetMemPool of the default one", CU(cuDeviceSetMemPool)(device, default_pool()));
  CUmemPoolProps p = device_pool();
  p.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
  CU(cuMemPoolCreate)(&pool, &p);
  show("cuDeviceSetMemPool of a pool of the host", CU(cuDeviceSetMemPool)(device, pool));
  show("cuDeviceGetMemPool null", CU(cuDeviceGetMemPool)(nullptr, device));
  show("cuDeviceGetDefaultMemPool null", CU(cuDeviceGetDefaultMemPool)(nullptr, device));
}

GROUP(pool_of_a_place, InContext) {
  CUmemoryPool pool = new_pool(), found = nullptr;
  constexpr auto pinned = CU_MEM_ALLOCATION_TYPE_PINNED;
  CUmemLocation there{CU_MEM_LOCATION_TYPE_DEVICE, device};
  show("cuMemGetDefaultMemPool", CU(cuMemGetDefaultMemPool)(&found, &there, pinned));
  show_flag("it is the device's", found == default_pool());
  show("cuMemGetMemPool", CU(cuMemGetMemPool)(&found, &there, pinned));
  show_flag("it is the same", found == default_pool());
  show("cuMemSetMemPool", CU(cuMemSetMemPool)(&there, pinned, pool));
  CU(cuDeviceGetMemPool)(&found, device);
  show_flag("it is the device's now", found == pool);
  CU(cuMemGetMemPool)(&found, &there, pinned);
  show_flag("and the place's", found == pool);
  show("cuMemSetMemPool of another type", CU(cuMemSetMemPool)(&there, CU_MEM_ALLOCATION_TYPE_MANAGED, pool));
  show("cuMemSetMemPool null", CU(cuMemSetMemPool)(&there, pinned, nullptr));
  for (const int place : {0, 2, 3, 4, 9}) {
    there = {odd<CUmemLocationType>(place), 0};
    const std::string name = ", place " + std::to_string(place);
    show("cuMemGetDefaultMemPool" + name, CU(cuMemGetDefaultMemPool)(&found, &there, pinned));
    show("cuMemGetMemPool" + name, CU(cuMemGetMemPool)(&found, &there, pinned));
    show("cuMemSetMemPool" + name, CU(cuMemSetMemPool)(&there, pinned, pool));
    show("cuMemGetDefaultMemPool, managed" + name,
         CU(cuMemGetDefaultMemPool)(&found, &there, CU_MEM_ALLOCATION_TYPE_MANAGED));
  }
  there = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  show("cuMemGetDefaultMemPool, managed", CU(cuMemGetDefaultMemPool)(&found, &there, CU_MEM_ALLOCATION_TYPE_MANAGED));
  show("cuMemGetDefaultMemPool, type 0", CU(cuMemGetDefaultMemPool)(&found, &there, odd<CUmemAllocationType>(0)));
  show("cuMemGetMemPool, type 3", CU(cuMemGetMemPool)(&found, &there, odd<CUmemAllocationType>(3)));
  there.id = 99;
  show("cuMemGetDefaultMemPool, device 99", CU(cuMemGetDefaultMemPool)(&found, &there, pinned));
  show("cuMemGetMemPool, device 99", CU(cuMemGetMemPool)(&found, &there, pinned));
  show("cuMemSetMemPool, device 99", CU(cuMemSetMemPool)(&there, pinned, pool));
}

// Pools of host memory and pools of managed memory.
GROUP(pool_of_the_host, InContext) {
  for (const int type : {1, 2}) {
    CUmemPoolProps p = device_pool();
    p.allocType = odd<CUmemAllocationType>(type);
    p.location = {type == 1 ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemoryPool pool = nullptr;
    CUdeviceptr a = 0;
    unsigned value = 9;
    show("cuMemPoolCreate", CU(cuMemPoolCreate)(&pool, &p));
    show("cuMemAllocFromPoolAsync", CU(cuMemAllocFromPoolAsync)(&a, 100, pool, nullptr));
    show("cuMemsetD32Async", CU(cuMemsetD32Async)(a, 5, 4, nullptr));
    show("cuStreamSynchronize", CU(cuStreamSynchronize)(nullptr));
    CU(cuPointerGetAttribute)(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a);
    show("its memory type", value);
    CU(cuPointerGetAttribute)(&value, CU_POINTER_ATTRIBUTE_IS_MANAGED, a);
    show("it is managed", value & 0xff);
    show("cuMemFreeAsync", CU(cuMemFreeAsync)(a, nullptr));
  }
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(pool_after_a_reset, InContext) {
  CUmemoryPool pool = new_pool();
  CUdeviceptr a = 0;
  unsigned long long value = 0;
  CU(cuMemAllocAsync)(&a, 1000, nullptr);
  show("cuDevicePrimaryCtxReset", CU(cuDevicePrimaryCtxReset_v2)(device));
  show("cuMemFreeAsync", CU(cuMemFreeAsync)(a, nullptr));
  show("cuMemFreeAsync null", CU(cuMemFreeAsync)(0, nullptr));
  show("cuMemAllocAsync", CU(cuMemAllocAsync)(&a, 1000, nullptr));
  show("cuMemAllocFromPoolAsync", CU(cuMemAllocFromPoolAsync)(&a, 1000, pool, nullptr));
  show("cuMemPoolGetAttribute of the default pool",
       CU(cuMemPoolGetAttribute)(default_pool(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
  show("used of it", static_cast<long long>(value));
  show("cuMemPoolGetAttribute of a pool", CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
  show("cuMemPoolDestroy", CU(cuMemPoolDestroy)(pool));
}

GROUP(pool_without_context, Initialized) {
  CUmemoryPool pool = nullptr;
  CUdeviceptr a = 0;
  unsigned long long value = 0;
  show("cuDeviceGetDefaultMemPool", CU(cuDeviceGetDefaultMemPool)(&pool, device));
  show("cuMemPoolGetAttribute", CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
  show("cuMemPoolTrimTo", CU(cuMemPoolTrimTo)(pool, 0));
  show("cuMemAllocAsync", CU(cuMemAllocAsync)(&a, 100, nullptr));
  show("cuMemAllocFromPoolAsync", CU(cuMemAllocFromPoolAsync)(&a, 100, pool, nullptr));
  show("cuMemFreeAsync null", CU(cuMemFreeAsync)(0, nullptr));
  CUmemoryPool made = new_pool();
  show_flag("cuMemPoolCreate gives one", made != nullptr);
  show("cuMemPoolDestroy", CU(cuMemPoolDestroy)(made));
}

// The driver dereferences these pointers, so each case may crash it.
GROUP(pool_nulls, Loaded) {
  const auto start = [] {
    CUcontext context = nullptr;
    CU(cuInit)(0);
    CU(cuDevicePrimaryCtxRetain)(&context, device);
    CU(cuCtxSetCurrent)(context);
  };
  const auto alone = [&](const std::string& what, const std::function<CUresult()>& call) {
    show_alone(what, [&] {
      start();
      return call();
    });
  };
  static CUmemAccess_flags flags{};
  static CUmemLocation there{CU_MEM_LOCATION_TYPE_DEVICE, device};
  static CUmemoryPool pool = nullptr;
  constexpr auto pinned = CU_MEM_ALLOCATION_TYPE_PINNED;
  alone("cuMemPoolSetAttribute null",
        [] { return CU(cuMemPoolSetAttribute)(default_pool(), odd<CUmemPool_attribute>(4), nullptr); });
  alone("cuMemPoolGetAccess null", [] { return CU(cuMemPoolGetAccess)(nullptr, default_pool(), &there); });
  alone("cuMemPoolGetAccess of no place", [] { return CU(cuMemPoolGetAccess)(&flags, default_pool(), nullptr); });
  alone("cuMemPoolSetAccess null", [] { return CU(cuMemPoolSetAccess)(default_pool(), nullptr, 1); });
  alone("cuMemGetDefaultMemPool null", [] { return CU(cuMemGetDefaultMemPool)(nullptr, &there, pinned); });
  alone("cuMemGetDefaultMemPool of no place", [] { return CU(cuMemGetDefaultMemPool)(&pool, nullptr, pinned); });
  alone("cuMemGetMemPool null", [] { return CU(cuMemGetMemPool)(nullptr, &there, pinned); });
  alone("cuMemGetMemPool of no place", [] { return CU(cuMemGetMemPool)(&pool, nullptr, pinned); });
  alone("cuMemSetMemPool of no place", [] { return CU(cuMemSetMemPool)(nullptr, pinned, default_pool()); });
}

}  // namespace
}  // namespace contract
