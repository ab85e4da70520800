// Calls that report support for atomics and for memory that other devices write, and calls for core dump settings.
#include "host/simgpu/api/cuda_api.h"

#include <algorithm>
#include <span>

#include "host/simgpu/api/driver.h"
#include "host/simgpu/api/memory/memory.h"
#include "ring/abi/coredump.h"

using namespace simgpu;

namespace {

// Returns the abilities for an operation. Kernels run on the host's processors and use the processors' atomics.
unsigned with_the_host(CUatomicOperation operation) {
  constexpr unsigned both_sizes = CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64;
  constexpr unsigned integer = CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_UNSIGNED | both_sizes;
  switch (operation) {
    case CU_ATOMIC_OPERATION_INTEGER_ADD:
    case CU_ATOMIC_OPERATION_INTEGER_MIN:
    case CU_ATOMIC_OPERATION_INTEGER_MAX: return integer | CU_ATOMIC_CAPABILITY_REDUCTION;
    case CU_ATOMIC_OPERATION_INTEGER_INCREMENT:
    case CU_ATOMIC_OPERATION_INTEGER_DECREMENT:
      return CU_ATOMIC_CAPABILITY_UNSIGNED | CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_REDUCTION;
    case CU_ATOMIC_OPERATION_FLOAT_MIN:
    case CU_ATOMIC_OPERATION_FLOAT_MAX: return 0;
    case CU_ATOMIC_OPERATION_EXCHANGE:
    case CU_ATOMIC_OPERATION_CAS: return both_sizes;
    default: return both_sizes | CU_ATOMIC_CAPABILITY_REDUCTION;
  }
}

bool are_operations(std::span<const CUatomicOperation> operations) {
  return std::all_of(operations.begin(), operations.end(), [](CUatomicOperation operation) {
    return operation >= CU_ATOMIC_OPERATION_INTEGER_ADD && operation < CU_ATOMIC_OPERATION_MAX;
  });
}

CUresult coredump_of_context(CUresult (*call)(CUcoredumpSettings, void*, std::size_t*), CUcoredumpSettings which,
                             void* value, std::size_t* size) {
  if (size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_context([&](Driver&, Context&) { return call(which, value, size); });
}

CUresult set_coredump(CUcoredumpSettings which, void* value, std::size_t* size) {
  return cuabi::coredump_set_of_context(which, value, size);
}

}  // namespace

CUresult cuDeviceGetHostAtomicCapabilities(unsigned* capabilities, const CUatomicOperation* operations, unsigned count,
                                           CUdevice dev) {
  if (capabilities == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& driver) {
    if (operations == nullptr || count == 0 || !are_operations({operations, count})) return CUDA_ERROR_INVALID_VALUE;
    if (driver.device(dev) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    std::transform(operations, operations + count, capabilities, with_the_host);
    return CUDA_SUCCESS;
  });
}

// Simulated devices cannot access each other, so no atomic operation between devices is supported.
CUresult cuDeviceGetP2PAtomicCapabilities(unsigned* capabilities, const CUatomicOperation* operations, unsigned count,
                                          CUdevice srcDevice, CUdevice dstDevice) {
  return with_driver([&](Driver& driver) {
    if (capabilities == nullptr || operations == nullptr || count == 0 || !are_operations({operations, count}))
      return CUDA_ERROR_INVALID_VALUE;
    if (driver.device(srcDevice) == nullptr || driver.device(dstDevice) == nullptr || srcDevice == dstDevice)
      return CUDA_ERROR_INVALID_DEVICE;
    std::fill_n(capabilities, count, 0U);
    return CUDA_SUCCESS;
  });
}

// No other device can write device memory, so the call only checks its arguments: there is nothing to flush.
CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope) {
  return with_context([&](Driver&, Context&) {
    const bool known =
        target == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX &&
        (scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER || scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES);
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

// The device reports 0 for CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, so this call is refused.
CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr dptr, std::size_t size,
                                       CUmemRangeHandleType handleType, unsigned long long flags) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_context([&](Driver& driver, Context&) {
    constexpr std::size_t page = 4096;
    const bool known = handleType == CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD && (flags & ~1ULL) == 0;
    const bool pages = size != 0 && dptr % page == 0 && size % page == 0;
    if (!pages || !known || !reachable(driver, dptr, size)) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_NOT_SUPPORTED;
  });
}

CUresult cuCoredumpGetAttribute(CUcoredumpSettings attrib, void* value, std::size_t* size) {
  return coredump_of_context(cuabi::coredump_get, attrib, value, size);
}
CUresult cuCoredumpSetAttribute(CUcoredumpSettings attrib, void* value, std::size_t* size) {
  return coredump_of_context(set_coredump, attrib, value, size);
}
CUresult cuCoredumpGetAttributeGlobal(CUcoredumpSettings attrib, void* value, std::size_t* size) {
  return cuabi::coredump_get(attrib, value, size);
}
CUresult cuCoredumpSetAttributeGlobal(CUcoredumpSettings attrib, void* value, std::size_t* size) {
  return cuabi::coredump_set(attrib, value, size);
}
