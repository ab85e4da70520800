// Calls on a device's primary context, whose handle stays the same until the process ends.
#include "host/simgpu/api/cuda_api.h"
#include "ring/base/mutex.h"

#include "host/simgpu/api/context/context.h"
#include "host/simgpu/api/driver.h"

using namespace simgpu;

namespace {

template <class F>
CUresult with_locked_device(CUdevice number, F&& call) {
  return with_driver([&](Driver& driver) {
    Device* device = driver.device(number);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const ring::RecursiveLock lock(device->mutex);
    return call(driver, *device);
  });
}

bool valid_flags(unsigned flags) {
  const unsigned scheduling = flags & CU_CTX_SCHED_MASK;
  return (flags & ~unsigned{CU_CTX_FLAGS_MASK}) == 0 && (scheduling & (scheduling - 1)) == 0;
}

}  // namespace

CUresult cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
  return with_locked_device(dev, [&](Driver& driver, Device& device) {
    device.mutex.assume_held();
    if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!device.primary->active.load()) {
      if (const CUresult fault = driver.fault(); fault != CUDA_SUCCESS) return fault;
      begin_context(driver, *device.primary, device.primary_flags);
    }
    ++device.primary_references;
    *pctx = device.primary->handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  return with_locked_device(dev, [&](Driver& driver, Device& device) {
    device.mutex.assume_held();
    if (device.primary_references == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--device.primary_references == 0 && device.primary->active.load()) end_context(driver, device.primary);
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev) { return cuDevicePrimaryCtxRelease_v2(dev); }

// A reset does not change the reference count: programs that retained the context must still release it.
CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  return with_locked_device(dev, [&](Driver& driver, Device& device) {
    device.mutex.assume_held();
    if (device.primary->active.load()) end_context(driver, device.primary);
    device.primary_flags = 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev) { return cuDevicePrimaryCtxReset_v2(dev); }

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned flags) {
  return with_locked_device(dev, [&](Driver&, Device& device) {
    device.mutex.assume_held();
    if (!valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    device.primary_flags = flags;
    const ring::MutexLock lock(device.primary->mutex);
    device.primary->flags = flags | CU_CTX_MAP_HOST;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned flags) {
  const CUresult active = with_locked_device(dev, [](Driver&, Device& device) {
    return device.primary->active.load() ? CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE : CUDA_SUCCESS;
  });
  return active != CUDA_SUCCESS ? active : cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned* flags, int* active) {
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_locked_device(dev, [&](Driver&, Device& device) {
    device.mutex.assume_held();
    *active = device.primary->active.load() ? 1 : 0;
    *flags = device.primary_flags;
    return CUDA_SUCCESS;
  });
}
