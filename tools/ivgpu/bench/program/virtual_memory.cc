// Measures the calls of virtual memory management, each separately, and the calls of a memory pool.
#include <array>
#include <cstdint>

#include "tools/ivgpu/bench/program/memory.h"

namespace measure {
namespace {

constexpr std::size_t range = std::size_t{32} << 30, piece = std::size_t{2} << 20, small = std::size_t{1} << 20;

// Checks that new device memory keeps its bytes: writes them and reads them back.
bool takes_bytes(CUdeviceptr at, std::size_t bytes) {
  unsigned char last = 0;
  CHECK(cuMemsetD8(at, 0x5A, bytes));
  CHECK(cuMemcpyDtoH(&last, at + bytes - 1, 1));
  return last == 0x5A;
}

// ---- virtual memory ------------------------------------------------------------------------------------------------

const Names virtual_names = {"vmm_granularity", "vmm_reserve", "vmm_create",  "vmm_map",
                             "vmm_set_access",  "vmm_unmap",   "vmm_release", "vmm_address_free"};

CUmemAllocationProp on(CUdevice device) {
  CUmemAllocationProp place{};
  place.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  place.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
  return place;
}

void granularity(const CUmemAllocationProp& place, int samples) {
  std::size_t bytes = 0;
  time_each({.name = "vmm_granularity", .samples = samples, .repeat = 16},
            [&] { CHECK(cuMemGetAllocationGranularity(&bytes, &place, CU_MEM_ALLOC_GRANULARITY_MINIMUM)); });
  if (bytes == 0 || piece % bytes != 0) fail("cuMemGetAllocationGranularity", "2 MiB are no multiple of it");
}

// Times each call in the life of one memory allocation.
void pieces(const CUmemAllocationProp& place, int samples) {
  const int warm_up = samples / 10 + 1;
  Series reserve("vmm_reserve", 0, warm_up), create("vmm_create", 0, warm_up), map("vmm_map", 0, warm_up),
      access("vmm_set_access", 0, warm_up), unmap("vmm_unmap", 0, warm_up), release("vmm_release", 0, warm_up),
      address_free("vmm_address_free", 0, warm_up);
  const CUmemAccessDesc both{.location = place.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  for (int i = 0; i < samples + warm_up; ++i) {
    CUdeviceptr at = 0;
    CUmemGenericAllocationHandle memory = 0;
    reserve.time([&] { CHECK(cuMemAddressReserve(&at, range, 0, 0, 0)); });
    create.time([&] { CHECK(cuMemCreate(&memory, piece, &place, 0)); });
    map.time([&] { CHECK(cuMemMap(at, piece, 0, memory, 0)); });
    access.time([&] { CHECK(cuMemSetAccess(at, piece, &both, 1)); });
    // Runs in a sample that is not reported, since only the calls are measured.
    if (i == 0 && !takes_bytes(at, piece)) fail("mapped memory", "it does not keep what is written");
    unmap.time([&] { CHECK(cuMemUnmap(at, piece)); });
    release.time([&] { CHECK(cuMemRelease(memory)); });
    address_free.time([&] { CHECK(cuMemAddressFree(at, range)); });
  }
  for (const Series* series : {&reserve, &create, &map, &access, &unmap, &release, &address_free}) series->report();
}

// ---- pools ---------------------------------------------------------------------------------------------------------

// First measures the calls alone. Then it measures pairs with a wait, as programs use them.
constexpr int burst = 16;
const Names pool_names = {"pool_allocate", "pool_free", "pool_pair"};

// Programs that care for speed set this attribute: by default a pool releases its memory at each wait, and the next
// allocation has to create memory again.
void keep_memory(CUdevice device) {
  CUmemoryPool pool = nullptr;
  std::uint64_t all = UINT64_MAX;
  CHECK(cuDeviceGetDefaultMemPool(&pool, device));
  CHECK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
}

void pool_calls(CUstream stream, int samples) {
  const int rounds = samples / burst + 1;
  Series allocate("pool_allocate", 0, burst), free("pool_free", 0, burst);
  std::array<CUdeviceptr, burst> blocks{};
  for (int round = 0; round < rounds + 1; ++round) {
    for (CUdeviceptr& block : blocks) allocate.time([&] { CHECK(cuMemAllocAsync(&block, small, stream)); });
    CHECK(cuStreamSynchronize(stream));
    if (round == 0)
      for (const CUdeviceptr block : blocks)
        if (!takes_bytes(block, small)) fail("cuMemAllocAsync", "the memory does not keep what is written");
    for (const CUdeviceptr block : blocks) free.time([&] { CHECK(cuMemFreeAsync(block, stream)); });
    CHECK(cuStreamSynchronize(stream));
  }
  allocate.report();
  free.report();
}

void pool_pairs(CUstream stream, int samples) {
  time_each({.name = "pool_pair", .samples = samples, .parts = burst}, [&] {
    for (int i = 0; i < burst; ++i) {
      CUdeviceptr block = 0;
      CHECK(cuMemAllocAsync(&block, small, stream));
      CHECK(cuMemFreeAsync(block, stream));
    }
    CHECK(cuStreamSynchronize(stream));
  });
}

}  // namespace

void virtual_memory(const Device& device, const MemoryEffort& effort) {
  if (!has(device.device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "virtual memory management",
           virtual_names))
    return;
  const CUmemAllocationProp place = on(device.device);
  std::size_t bytes = 0;
  if (!GIVEN(cuMemGetAllocationGranularity(&bytes, &place, CU_MEM_ALLOC_GRANULARITY_MINIMUM), virtual_names)) return;
  granularity(place, effort.calls);
  pieces(place, effort.calls);
}

void pools(const Device& device, const MemoryEffort& effort) {
  if (!has(device.device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, "memory pools", pool_names)) return;
  CUstream stream = nullptr;
  CUdeviceptr block = 0;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  if (!GIVEN(cuMemAllocAsync(&block, small, stream), pool_names)) return;
  CHECK(cuMemFreeAsync(block, stream));
  keep_memory(device.device);
  pool_calls(stream, effort.calls);
  pool_pairs(stream, effort.calls / 4);
}

}  // namespace measure
