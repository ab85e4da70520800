// Memory in the order of streams, and its pools.
#include "tests/contract/suite.h"

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

}  // namespace
}  // namespace contract
