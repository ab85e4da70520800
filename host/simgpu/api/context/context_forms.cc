// The context calls of CUDA 2, whose names have no version suffix.
#include "host/simgpu/api/cuda_api.h"

#include "host/simgpu/api/driver.h"

using namespace simgpu;

CUresult cuCtxCreate(CUcontext* pctx, unsigned flags, CUdevice dev) {
  const CUresult result = cuCtxCreate_v2(pctx, flags, dev);
  if (result != CUDA_SUCCESS) return result;
  return with_driver([&](Driver& driver) {
    if (const auto context = driver.contexts.find(*pctx)) context->api_version = 3010;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxDestroy(CUcontext ctx) { return cuCtxDestroy_v2(ctx); }
CUresult cuCtxPushCurrent(CUcontext ctx) { return cuCtxPushCurrent_v2(ctx); }
CUresult cuCtxPopCurrent(CUcontext* pctx) { return cuCtxPopCurrent_v2(pctx); }
