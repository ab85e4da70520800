// Calls that allocate managed memory and set its location. Host and device share the pages of managed memory, so no
// data moves: advice is only checked and stored (managed_advice.h).
#include "host/simgpu/api/memory/managed.h"

#include "host/simgpu/api/graph/capture.h"
#include "host/simgpu/api/memory/memory.h"
#include "host/simgpu/api/memory/memory_pool.h"
#include "host/simgpu/api/stream/streams.h"
#include "ring/abi/range_attributes.h"

namespace simgpu {
namespace {

// Checks and stores advice. `no_device` is the error to return if the device does not exist.
CUresult advise(Driver& driver, Address start, std::size_t size, CUmem_advise advice, const CUmemLocation& place,
                CUresult no_device) {
  if (place.type < CU_MEM_LOCATION_TYPE_DEVICE || place.type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
    return CUDA_ERROR_INVALID_VALUE;
  const bool names_place = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
                           advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
  if (names_place) {
    const CUresult error = judge_place(driver, place);
    if (error != CUDA_SUCCESS) return error == CUDA_ERROR_INVALID_DEVICE ? no_device : error;
  }
  const bool node = place.type != CU_MEM_LOCATION_TYPE_DEVICE && place.type != CU_MEM_LOCATION_TYPE_HOST;
  const CUmemLocation of_host{CU_MEM_LOCATION_TYPE_HOST, 0};  // the driver stores the host in place of a NUMA node
  const auto change = [&](auto&& f) {
    driver.managed_advice.change(start, size, f);
    return CUDA_SUCCESS;
  };
  switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
      return change([&](Advice& a) { a.read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY; });
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION: return change([&](Advice& a) { a.preferred = node ? of_host : place; });
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: return change([&](Advice& a) { a.preferred = {}; });
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
      return node ? CUDA_ERROR_INVALID_VALUE
                  : change([&](Advice& a) { a.accessed_by.insert(cuabi::number_of_place(place)); });
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
      return node ? CUDA_ERROR_INVALID_VALUE
                  : change([&](Advice& a) { a.accessed_by.erase(cuabi::number_of_place(place)); });
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult prefetch(Address start, std::size_t size, const CUmemLocation& place, unsigned flags, CUstream handle) {
  return with_context_of(handle, [&](Driver& driver, Context& context) {
    const std::shared_ptr<Stream> stream = stream_of(driver, context, handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (flags != 0 || !is_managed_range(driver, start, size)) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = judge_place(driver, place); error != CUDA_SUCCESS) return error;
    driver.managed_advice.change(start, size, [&](Advice& a) { a.prefetched = place; });
    post(driver, *stream, {});
    return CUDA_SUCCESS;
  });
}

}  // namespace

bool is_managed_range(Driver& driver, Address start, std::size_t size) {
  const auto allocation = driver.memory.find(start);
  if (!allocation || size == 0) return false;
  const bool managed =
      allocation->kind == MemoryKind::Managed || (allocation->pool != nullptr && allocation->pool->managed());
  return managed && size <= allocation->size - (start - allocation->start);
}

CUresult judge_place(Driver& driver, const CUmemLocation& place) {
  switch (place.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return driver.device(place.id) == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA: return place.id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUmemLocation place_of_number(CUdevice number) {
  if (number == CU_DEVICE_CPU) return {CU_MEM_LOCATION_TYPE_HOST, 0};
  return {CU_MEM_LOCATION_TYPE_DEVICE, number};
}

}  // namespace simgpu

using namespace simgpu;

CUresult cuMemAllocManaged(CUdeviceptr* dptr, std::size_t bytesize, unsigned flags) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  if (dptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_context([&](Driver& driver, Context& context) {
    const bool known = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST;
    if (bytesize == 0 || !known) return CUDA_ERROR_INVALID_VALUE;
    const Address start = allocate(driver, context, MemoryKind::Managed, bytesize);
    if (start == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *dptr = start;
    return CUDA_SUCCESS;
  });
}

// The CUDA 12.2 versions reject address 0 before they check the state; the older versions check the state first.
CUresult cuMemAdvise_v2(CUdeviceptr devPtr, std::size_t count, CUmem_advise advice, CUmemLocation location) {
  if (devPtr == 0) return CUDA_ERROR_INVALID_VALUE;
  return with_context([&](Driver& driver, Context&) {
    if (!is_managed_range(driver, devPtr, count)) return CUDA_ERROR_INVALID_VALUE;
    return advise(driver, devPtr, count, advice, location, CUDA_ERROR_INVALID_VALUE);
  });
}

CUresult cuMemAdvise(CUdeviceptr devPtr, std::size_t count, CUmem_advise advice, CUdevice device) {
  return with_context([&](Driver& driver, Context&) {
    if (!is_managed_range(driver, devPtr, count)) return CUDA_ERROR_INVALID_VALUE;
    return advise(driver, devPtr, count, advice, place_of_number(device), CUDA_ERROR_INVALID_DEVICE);
  });
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, std::size_t count, CUmemLocation location, unsigned flags,
                               CUstream hStream) {
  if (devPtr == 0) return CUDA_ERROR_INVALID_VALUE;
  return prefetch(devPtr, count, location, flags, hStream);
}

CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, std::size_t count, CUdevice dstDevice, CUstream hStream) {
  return prefetch(devPtr, count, place_of_number(dstDevice), 0, hStream);
}

// Attaching memory to a stream has no effect here. The NULL stream cannot own memory, so it is refused.
CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, std::size_t length, unsigned flags) {
  return with_context_of(hStream, [&](Driver& driver, Context& context) {
    const std::shared_ptr<Stream> stream = stream_of(driver, context, hStream);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const bool known = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE;
    const bool legacy = hStream == nullptr || hStream == CU_STREAM_LEGACY;
    const auto allocation = driver.memory.find(dptr);
    if (!known || (flags == CU_MEM_ATTACH_SINGLE && legacy) || !is_managed_range(driver, dptr, 1) ||
        dptr != allocation->start || (length != 0 && length != allocation->size))
      return CUDA_ERROR_INVALID_VALUE;
    post(driver, *stream, {});
    return CUDA_SUCCESS;
  });
}
