// Virtual memory management. A reservation has memory at once, so mapping an object twice gives different memory in
// this driver.
#include <sys/mman.h>

#include <algorithm>

#include "tests/fake/state.h"

namespace fake {
namespace {

constexpr std::size_t granularity = std::size_t{2} << 20;
constexpr std::size_t largest_reservation = std::size_t{1} << 36;

void check_properties(const char* call, const CUmemAllocationProp* p) {
  touch(p, sizeof *p);
  if (p->win32HandleMetaData != nullptr) die("%s: a pointer that no host sends", call);
}

// Checks that [at, at + bytes) lies in one reservation.
void check_reserved(const char* call, CUdeviceptr at, std::size_t bytes) {
  auto range = state->reserved.upper_bound(at);
  if (range != state->reserved.begin()) {
    --range;
    if (at - range->first <= range->second && bytes <= range->second - (at - range->first)) return;
  }
  forgive_ended_range(at, bytes);
  die("%s: %zu bytes at %llx are not reserved", call, bytes, at);
}

void check_allocation(const char* call, CUmemGenericAllocationHandle handle) {
  check(call, Handle::Allocation, reinterpret_cast<const void*>(handle));
}

CUresult reserve(CUdeviceptr* at, std::size_t bytes, std::size_t, CUdeviceptr, unsigned long long) {
  Entry entry("cuMemAddressReserve", false, false);
  if (entry.failed()) return entry.result;
  if (bytes == 0 || bytes % granularity != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > largest_reservation) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto freed =
      std::find_if(state->freed.begin(), state->freed.end(), [&](const auto& f) { return f.second == bytes; });
  if (freed != state->freed.end()) {
    state->reserved.insert(*freed);
    *at = freed->first;
    state->freed.erase(freed);
    return CUDA_SUCCESS;
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *at = reinterpret_cast<CUdeviceptr>(memory);
  state->reserved[*at] = bytes;
  return CUDA_SUCCESS;
}

CUresult release_range(CUdeviceptr at, std::size_t bytes) {
  Entry entry("cuMemAddressFree", false, false);
  if (entry.failed()) return entry.result;
  check_reserved("cuMemAddressFree", at, bytes);
  const auto range = state->reserved.find(at);
  const auto mapped = state->mapped.lower_bound(at);
  const bool is_mapped = mapped != state->mapped.end() && mapped->first - at < bytes;
  if (range == state->reserved.end() || range->second != bytes || is_mapped) return CUDA_ERROR_INVALID_VALUE;
  state->reserved.erase(range);
  if (state->freed_ranges_stay)
    state->freed[at] = bytes;
  else
    munmap(reinterpret_cast<void*>(at), bytes);
  if (state->races) state->ended_ranges.push_back({at, bytes, state->races->now()});
  return CUDA_SUCCESS;
}

CUresult create(CUmemGenericAllocationHandle* handle, std::size_t bytes, const CUmemAllocationProp* p,
                unsigned long long) {
  Entry entry("cuMemCreate", false, false);
  if (entry.failed()) return entry.result;
  check_properties("cuMemCreate", p);
  if (bytes == 0 || bytes % granularity != 0 || p->location.id != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > device_memory) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = reinterpret_cast<std::uint64_t>(issue<void*>(Handle::Allocation));
  state->physical[*handle] = bytes;
  state->physical_given[*handle] = 1;
  return CUDA_SUCCESS;
}

// A memory object exists while it is mapped, even after its last release.
void end_if_unused(const char* call, CUmemGenericAllocationHandle handle) {
  const bool is_mapped = std::any_of(state->mapped.begin(), state->mapped.end(),
                                     [&](const auto& piece) { return piece.second == handle; });
  if (state->physical_given[handle] == 0 && !is_mapped)
    destroy(call, Handle::Allocation, reinterpret_cast<const void*>(handle));
}

CUresult release(CUmemGenericAllocationHandle handle) {
  Entry entry("cuMemRelease", false, false);
  if (entry.failed()) return entry.result;
  check_allocation("cuMemRelease", handle);
  if (state->physical_given[handle] == 0) return CUDA_ERROR_INVALID_VALUE;
  --state->physical_given[handle];
  end_if_unused("cuMemRelease", handle);
  return CUDA_SUCCESS;
}

CUresult map(CUdeviceptr at, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
             unsigned long long) {
  Entry entry("cuMemMap", false, false);
  if (entry.failed()) return entry.result;
  check_reserved("cuMemMap", at, bytes);
  check_allocation("cuMemMap", handle);
  if (offset != 0 || bytes != state->physical[handle]) return CUDA_ERROR_NOT_SUPPORTED;
  const auto next = state->mapped.upper_bound(at);
  const bool meets_next = next != state->mapped.end() && next->first - at < bytes;
  if (meets_next || is_live(at, 1)) return CUDA_ERROR_INVALID_VALUE;
  state->mapped[at] = handle;
  state->ranges[at] = bytes;
  return CUDA_SUCCESS;
}

CUresult unmap(CUdeviceptr at, std::size_t bytes) {
  Entry entry("cuMemUnmap", false, false);
  if (entry.failed()) return entry.result;
  check_reserved("cuMemUnmap", at, bytes);
  auto piece = state->mapped.lower_bound(at);
  while (piece != state->mapped.end() && piece->first - at < bytes) {
    end_range(piece->first, state->ranges[piece->first]);
    const CUmemGenericAllocationHandle handle = piece->second;
    piece = state->mapped.erase(piece);
    end_if_unused("cuMemUnmap", handle);
  }
  return CUDA_SUCCESS;
}

CUresult retain(CUmemGenericAllocationHandle* handle, void* inside) {
  Entry entry("cuMemRetainAllocationHandle", false, false);
  if (entry.failed()) return entry.result;
  auto piece = state->mapped.upper_bound(reinterpret_cast<CUdeviceptr>(inside));
  if (piece == state->mapped.begin()) return CUDA_ERROR_INVALID_VALUE;
  --piece;
  if (reinterpret_cast<CUdeviceptr>(inside) - piece->first >= state->ranges[piece->first])
    return CUDA_ERROR_INVALID_VALUE;
  ++state->physical_given[piece->second];
  return *handle = piece->second, CUDA_SUCCESS;
}

}  // namespace

void fill_virtual_memory(host::Driver& t) {
  t.cuMemAddressReserve = reserve;
  t.cuMemAddressFree = release_range;
  t.cuMemCreate = create;
  t.cuMemRelease = release;
  t.cuMemMap = map;
  t.cuMemUnmap = unmap;
  t.cuMemRetainAllocationHandle = retain;
  t.cuMemSetAccess = [](CUdeviceptr at, std::size_t bytes, const CUmemAccessDesc* access, std::size_t count) {
    Entry entry("cuMemSetAccess", false, false);
    check_reserved("cuMemSetAccess", at, bytes);
    touch(access, count * sizeof *access);
    return entry.result;
  };
  t.cuMemGetAccess = [](unsigned long long* flags, const CUmemLocation* location, CUdeviceptr) {
    touch(location, sizeof *location);
    return *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE, Entry("cuMemGetAccess", false, false).result;
  };
  t.cuMemGetAllocationGranularity = [](std::size_t* bytes, const CUmemAllocationProp* p,
                                       CUmemAllocationGranularity_flags) {
    check_properties("cuMemGetAllocationGranularity", p);
    return *bytes = granularity, Entry("cuMemGetAllocationGranularity", false, false).result;
  };
  t.cuMemGetAllocationPropertiesFromHandle = [](CUmemAllocationProp* p, CUmemGenericAllocationHandle handle) {
    Entry entry("cuMemGetAllocationPropertiesFromHandle", false, false);
    check_allocation("cuMemGetAllocationPropertiesFromHandle", handle);
    *p = {};
    p->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p->location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    return entry.result;
  };
}

}  // namespace fake
