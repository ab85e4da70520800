// Calls that allocate and free device memory.
#include "host/simgpu/api/memory/memory.h"

#include <sys/mman.h>

#include "host/simgpu/api/context/context.h"
#include "host/simgpu/api/graph/capture.h"
#include "host/simgpu/api/memory/memory_pool.h"
#include "host/simgpu/api/stream/streams.h"
#include "ring/abi/old_sizes.h"

namespace simgpu {

void give_back(Driver& driver, const Allocation& allocation) {
  if (allocation.pool != nullptr) {
    allocation.pool->free(allocation.start, allocation.size);
    return;
  }
  if (!allocation.on_host()) {
    if (allocation.kind == MemoryKind::Managed) driver.managed_advice.forget(allocation.start, allocation.size);
    allocation.device->space.free(allocation.start);
    return;
  }
  auto* const start = reinterpret_cast<void*>(allocation.start);
  for (const auto& device : driver.devices) device->space.remove_host(start);
  if (allocation.kind == MemoryKind::Host) munmap(start, allocation.size);
}

std::optional<Range> range_of(Driver& driver, Address address) {
  for (const auto& device : driver.devices)
    if (auto range = device->space.find(address)) return range;
  return std::nullopt;
}

bool reachable(Driver& driver, Address address, std::size_t size, bool to_write) {
  for (const auto& device : driver.devices)
    if (device->space.check(address, size, to_write)) return true;
  return false;
}

bool known(Driver& driver, Address address, std::size_t size, bool to_write) {
  const auto range = range_of(driver, address);
  return range && !range->leaving && reachable(driver, address, size, to_write);
}

void enter(Driver& driver, Context& context, MemoryKind kind, Address start, std::size_t size,
           const std::shared_ptr<MemoryPool>& pool) {
  Device& device = pool == nullptr ? context.device : pool->device();
  const auto range = device.space.find(start);
  driver.memory.insert({.start = start,
                        .size = size,
                        .kind = kind,
                        .device = &device,
                        .context = &context,
                        .flags = 0,
                        .id = range ? range->id : 0,
                        .pool = pool});
}

Address allocate(Driver& driver, Context& context, MemoryKind kind, std::size_t size) {
  const Address start = context.device.space.allocate(size);
  if (start != 0) enter(driver, context, kind, start, size);
  return start;
}

namespace {

CUresult allocate_into(CUdeviceptr* out, std::size_t size, MemoryKind kind) {
  return with_context([&](Driver& driver, Context& context) {
    if (out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    const Address start = allocate(driver, context, kind, size);
    if (start == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = start;
    return CUDA_SUCCESS;
  });
}

std::size_t round_up(std::size_t size, std::size_t step) { return (size + step - 1) / step * step; }

}  // namespace
}  // namespace simgpu

using namespace simgpu;

CUresult cuMemAlloc_v2(CUdeviceptr* dptr, std::size_t bytesize) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  return allocate_into(dptr, bytesize, MemoryKind::Device);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, std::size_t* pPitch, std::size_t WidthInBytes, std::size_t Height,
                            unsigned ElementSizeBytes) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  return with_context([&](Driver& driver, Context& context) {
    constexpr std::size_t step = 512;  // the texture alignment, to which NVIDIA's driver aligns a pitch as well
    const bool element = ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16;
    if (dptr == nullptr || pPitch == nullptr || WidthInBytes == 0 || Height == 0 || !element)
      return CUDA_ERROR_INVALID_VALUE;
    constexpr std::size_t most = 0x7fffffff;  // CU_DEVICE_ATTRIBUTE_MAX_PITCH
    if (WidthInBytes > most) return CUDA_ERROR_INVALID_VALUE;
    std::size_t total = 0;
    if (__builtin_mul_overflow(round_up(WidthInBytes, step), Height, &total)) return CUDA_ERROR_OUT_OF_MEMORY;
    const Address start = allocate(driver, context, MemoryKind::Device, total);
    if (start == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *dptr = start;
    *pPitch = round_up(WidthInBytes, step);
    return CUDA_SUCCESS;
  });
}

// Waits for all work that may use the memory, as NVIDIA's driver does.
CUresult cuMemFree_v2(CUdeviceptr dptr) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  if (const CUresult r = living_or_no_context(); r != CUDA_SUCCESS) return r;
  if (dptr == 0) return CUDA_SUCCESS;
  return with_driver([&](Driver& driver) {
    const auto allocation = driver.memory.take(
        dptr, [](const Allocation& a) { return !a.on_host() && a.kind != MemoryKind::Mapped && !a.is_variable; });
    if (!allocation) return CUDA_ERROR_INVALID_VALUE;
    const CUresult fault = wait_for(driver, pending(driver, *allocation->context));
    give_back(driver, *allocation);
    return fault;
  });
}

CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return with_context([&](Driver&, Context& context) {
    const AddressSpace& space = context.device.space;
    if (free != nullptr) *free = space.capacity() - space.used();
    if (total != nullptr) *total = space.capacity();
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetInfo(unsigned* free, unsigned* total) {
  const CUresult state = with_driver([](Driver& driver) {
    const Context* context = driver.current();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (!context->active.load(std::memory_order_acquire)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    // The version is checked before a fault.
    return cuabi::old_sizes_work_in(context->api_version) ? driver.fault() : CUDA_ERROR_INVALID_CONTEXT;
  });
  if (state != CUDA_SUCCESS) return state;
  std::size_t available = 0, all = 0;
  const CUresult result = cuMemGetInfo_v2(free == nullptr ? nullptr : &available, total == nullptr ? nullptr : &all);
  if (result != CUDA_SUCCESS) return result;
  if (free != nullptr) *free = cuabi::size_in_32_bits(available);
  if (total != nullptr) *total = cuabi::size_in_32_bits(all);
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* pbase, std::size_t* psize, CUdeviceptr dptr) {
  if (pbase == nullptr && psize == nullptr) return CUDA_SUCCESS;  // the caller requests no result
  return with_context([&](Driver& driver, Context&) {
    const auto allocation = driver.memory.find(dptr);
    const auto range = allocation ? std::nullopt : range_of(driver, dptr);  // the range of a module's variable
    if (!allocation && (!range || range->leaving)) return CUDA_ERROR_NOT_FOUND;
    if (pbase != nullptr) *pbase = allocation ? allocation->start : range->start;
    if (psize != nullptr) *psize = allocation ? allocation->size : range->size;
    return CUDA_SUCCESS;
  });
}
