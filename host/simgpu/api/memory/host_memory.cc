// Calls for host memory that devices can access. The device address of a block is its host address.
#include "host/simgpu/api/cuda_api.h"

#include <sys/mman.h>

#include "host/simgpu/api/graph/capture.h"
#include "host/simgpu/api/memory/memory.h"
#include "host/simgpu/api/memory/process_memory.h"
#include "host/simgpu/api/stream/streams.h"

using namespace simgpu;

namespace {

bool add_host(Driver& driver, void* start, std::size_t size, bool read_only = false) {
  const Range range{.start = address_of(start), .size = size, .kind = RangeKind::Host, .read_only = read_only};
  for (std::size_t i = 0; i < driver.devices.size(); ++i) {
    if (driver.devices[i]->space.add(range)) continue;
    while (i-- > 0) driver.devices[i]->space.remove_host(start);
    return false;
  }
  return true;
}

void enter_host(Driver& driver, Context& context, MemoryKind kind, void* start, std::size_t size, unsigned flags) {
  driver.memory.insert({.start = address_of(start),
                        .size = size,
                        .kind = kind,
                        .device = &context.device,
                        .context = &context,
                        .flags = flags,
                        .id = driver.next_id() | std::uint64_t{1} << 48});  // ids of device memory never have bit 48
}

// Returns true if the memory can be registered.
bool is_fit(const void* start, std::size_t size, bool read_only) {
  const ProcessMemory memory = process_memory(address_of(start), size);
  return memory.there && memory.readable && (memory.writable || read_only) && !memory.shared_file;
}

template <class Wanted>
CUresult release(Driver& driver, const void* start, Wanted wanted, CUresult otherwise) {
  const auto allocation = driver.memory.take(address_of(start), wanted);
  if (!allocation) return otherwise;
  const CUresult fault = wait_for(driver, pending(driver, *allocation->context));
  give_back(driver, *allocation);
  return fault;
}

}  // namespace

CUresult cuMemHostAlloc(void** pp, std::size_t bytesize, unsigned flags) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  return with_context([&](Driver& driver, Context& context) {
    constexpr unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (pp == nullptr || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
    *pp = nullptr;
    if (bytesize == 0) return CUDA_SUCCESS;
    void* start = mmap(nullptr, bytesize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    if (!add_host(driver, start, bytesize)) {
      munmap(start, bytesize);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    // Every block is portable and mapped, but the driver reports only DEVICEMAP.
    enter_host(driver, context, MemoryKind::Host, start, bytesize,
               (flags & CU_MEMHOSTALLOC_WRITECOMBINED) | CU_MEMHOSTALLOC_DEVICEMAP);
    *pp = start;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAllocHost_v2(void** pp, std::size_t bytesize) { return cuMemHostAlloc(pp, bytesize, 0); }

CUresult cuMemFreeHost(void* p) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  if (const CUresult state = living_or_no_context(); state != CUDA_SUCCESS || p == nullptr) return state;
  return with_driver([&](Driver& driver) {
    const auto wanted = [](const Allocation& a) { return a.kind == MemoryKind::Host; };
    return release(driver, p, wanted, CUDA_ERROR_INVALID_VALUE);
  });
}

CUresult cuMemHostRegister_v2(void* p, std::size_t bytesize, unsigned Flags) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  return with_context([&](Driver& driver, Context& context) {
    constexpr unsigned served =
        CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
    // CU_MEMHOSTREGISTER_IOMEMORY registers memory of another device. The simulation never maps such memory, and the
    // driver returns INVALID_VALUE for other memory.
    if (p == nullptr || bytesize == 0 || (Flags & ~served) != 0) return CUDA_ERROR_INVALID_VALUE;
    const bool read_only = (Flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0;
    if (const auto there = driver.memory.find(address_of(p)); there && there->kind != MemoryKind::Registered)
      return CUDA_ERROR_INVALID_VALUE;
    if (driver.memory.overlaps(address_of(p), bytesize)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (!is_fit(p, bytesize, read_only)) return CUDA_ERROR_INVALID_VALUE;
    if (!add_host(driver, p, bytesize, read_only)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    // As in the driver, the reported flags do not contain READ_ONLY.
    enter_host(driver, context, MemoryKind::Registered, p, bytesize,
               (Flags & ~unsigned{CU_MEMHOSTREGISTER_READ_ONLY}) | CU_MEMHOSTREGISTER_DEVICEMAP);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostRegister(void* p, std::size_t bytesize, unsigned Flags) {
  return cuMemHostRegister_v2(p, bytesize, Flags);
}

CUresult cuMemHostUnregister(void* p) {
  if (p == nullptr) {
    const CUresult state = living_or_no_context();
    return state == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : state;
  }
  return with_context([&](Driver& driver, Context&) {
    const auto allocation = driver.memory.find(address_of(p));
    const bool other = allocation && (allocation->kind != MemoryKind::Registered || allocation->start != address_of(p));
    if (other) return CUDA_ERROR_INVALID_VALUE;
    const auto wanted = [](const Allocation& a) { return a.kind == MemoryKind::Registered; };
    return release(driver, p, wanted, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned Flags) {
  return with_context([&](Driver& driver, Context&) {
    const auto allocation = driver.memory.find(address_of(p));
    const bool there = allocation && (allocation->on_host() || allocation->kind == MemoryKind::Mapped);
    if (pdptr == nullptr || Flags != 0 || !there) return CUDA_ERROR_INVALID_VALUE;
    *pdptr = address_of(p);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostGetFlags(unsigned* pFlags, void* p) {
  if (pFlags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_context([&](Driver& driver, Context&) {
    const auto allocation = driver.memory.find(address_of(p));
    const bool there = allocation && (allocation->on_host() || allocation->kind == MemoryKind::Managed);
    if (!there) return CUDA_ERROR_INVALID_VALUE;
    *pFlags = allocation->flags;
    return CUDA_SUCCESS;
  });
}
