// Copies of rows between two contexts of one device. Both contexts see the same memory, so the guest makes the copy in
// one context. The synchronous call is ordered after all earlier work and before all later work of both contexts, so it
// waits for both contexts.
#include <cstring>

#include "guest/calls/calls.h"
#include "guest/calls/captured.h"
#include "guest/calls/copy/judge_copy.h"
#include "guest/calls/stub.h"
#include "guest/process/context.h"

namespace guest::calls {
namespace {

// Checks the context of a side that is device memory. A NULL context is the current context.
CUresult check_side(CUmemorytype type, CUcontext handle) {
  if (type != CU_MEMORYTYPE_DEVICE || handle == nullptr) return CUDA_SUCCESS;
  const Context* context = find_context(handle);
  return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : state_of(*context);
}

// Returns the copy without contexts, and without mipmap levels, which the driver ignores here.
CUDA_MEMCPY3D in_one_context(const CUDA_MEMCPY3D_PEER& c) {
  CUDA_MEMCPY3D copy;
  std::memset(&copy, 0, sizeof copy);
  copy.srcXInBytes = c.srcXInBytes, copy.srcY = c.srcY, copy.srcZ = c.srcZ;
  copy.srcMemoryType = c.srcMemoryType, copy.srcHost = c.srcHost, copy.srcDevice = c.srcDevice;
  copy.srcArray = c.srcArray, copy.srcPitch = c.srcPitch, copy.srcHeight = c.srcHeight;
  copy.dstXInBytes = c.dstXInBytes, copy.dstY = c.dstY, copy.dstZ = c.dstZ;
  copy.dstMemoryType = c.dstMemoryType, copy.dstHost = c.dstHost, copy.dstDevice = c.dstDevice;
  copy.dstArray = c.dstArray, copy.dstPitch = c.dstPitch, copy.dstHeight = c.dstHeight;
  copy.WidthInBytes = c.WidthInBytes, copy.Height = c.Height, copy.Depth = c.Depth;
  return copy;
}

CUresult judge(const CUDA_MEMCPY3D_PEER* c, CUstream stream) {
  Context* context = nullptr;
  if (const CUresult r = enter(context, {stream}); r != CUDA_SUCCESS) return r;
  if (c == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult r = check_side(c->dstMemoryType, c->dstContext); r != CUDA_SUCCESS) return r;
  if (const CUresult r = check_side(c->srcMemoryType, c->srcContext); r != CUDA_SUCCESS) return r;
  return judge_copy(in_one_context(*c), stream);
}

// Waits for all work of the current context, and of the contexts that the copy names.
CUresult await_contexts(const CUDA_MEMCPY3D_PEER& c) {
  const CUcontext dst = c.dstMemoryType == CU_MEMORYTYPE_DEVICE ? c.dstContext : nullptr;
  const CUcontext src = c.srcMemoryType == CU_MEMORYTYPE_DEVICE ? c.srcContext : nullptr;
  for (const CUcontext handle : {CUcontext{}, dst, src}) {
    const Context* const context = handle == nullptr ? current_context() : find_context(handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (const CUresult r = await_context(*context); r != CUDA_SUCCESS) return r;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* c) {
  if (const CUresult r = judge(c, nullptr); r != CUDA_SUCCESS) return r;
  if (const CUresult r = await_contexts(*c); r != CUDA_SUCCESS) return r;
  const CUDA_MEMCPY3D copy = in_one_context(*c);
  if (const CUresult r = calls::cuMemcpy3D_v2(&copy); r != CUDA_SUCCESS) return r;
  return Stub<api::id_of::cuStreamSynchronize>::call(nullptr);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* c, CUstream stream) {
  if (const CUresult r = judge(c, stream); r != CUDA_SUCCESS) return r;
  const CUDA_MEMCPY3D copy = in_one_context(*c);
  return calls::cuMemcpy3DAsync_v2(&copy, stream);
}

}  // namespace guest::calls
