// The _ptsz variants of the calls, for which NULL stands for the per-thread stream. copy.cc and fill.cc define the
// _ptds variants, whose calls take no stream.
#include "host/simgpu/api/cuda_api.h"

#include "host/simgpu/api/stream/streams.h"

using simgpu::own;

CUresult cuStreamQuery_ptsz(CUstream s) { return cuStreamQuery(own(s)); }
CUresult cuStreamSynchronize_ptsz(CUstream s) { return cuStreamSynchronize(own(s)); }
CUresult cuStreamGetFlags_ptsz(CUstream s, unsigned* flags) { return cuStreamGetFlags(own(s), flags); }
CUresult cuStreamGetPriority_ptsz(CUstream s, int* priority) { return cuStreamGetPriority(own(s), priority); }
CUresult cuStreamGetId_ptsz(CUstream s, unsigned long long* id) { return cuStreamGetId(own(s), id); }
CUresult cuStreamGetDevice_ptsz(CUstream s, CUdevice* device) { return cuStreamGetDevice(own(s), device); }
CUresult cuStreamGetCtx_ptsz(CUstream s, CUcontext* context) { return cuStreamGetCtx(own(s), context); }
CUresult cuStreamGetCtx_v2_ptsz(CUstream s, CUcontext* context, CUgreenCtx* green) {
  return cuStreamGetCtx_v2(own(s), context, green);
}
CUresult cuStreamIsCapturing_ptsz(CUstream s, CUstreamCaptureStatus* status) {
  return cuStreamIsCapturing(own(s), status);
}
CUresult cuStreamGetCaptureInfo_ptsz(CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return cuStreamGetCaptureInfo(own(s), status, id);
}
CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                        const CUgraphNode** nodes, std::size_t* count) {
  return cuStreamGetCaptureInfo_v2(own(s), status, id, graph, nodes, count);
}
CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                        const CUgraphNode** nodes, const CUgraphEdgeData** edges, std::size_t* count) {
  return cuStreamGetCaptureInfo_v3(own(s), status, id, graph, nodes, edges, count);
}
CUresult cuStreamWaitEvent_ptsz(CUstream s, CUevent event, unsigned flags) {
  return cuStreamWaitEvent(own(s), event, flags);
}
CUresult cuLaunchHostFunc_ptsz(CUstream s, CUhostFn function, void* data) {
  return cuLaunchHostFunc(own(s), function, data);
}
CUresult cuStreamAttachMemAsync_ptsz(CUstream s, CUdeviceptr address, std::size_t length, unsigned flags) {
  return cuStreamAttachMemAsync(own(s), address, length, flags);
}
CUresult cuStreamBatchMemOp_v2_ptsz(CUstream s, unsigned count, CUstreamBatchMemOpParams* operations, unsigned flags) {
  return cuStreamBatchMemOp_v2(own(s), count, operations, flags);
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream s) { return cuEventRecord(event, own(s)); }
CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream s, unsigned flags) {
  return cuEventRecordWithFlags(event, own(s), flags);
}

CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream s) {
  return cuMemcpyAsync(to, from, size, own(s));
}
CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void* from, std::size_t size, CUstream s) {
  return cuMemcpyHtoDAsync_v2(to, from, size, own(s));
}
CUresult cuMemcpyDtoHAsync_v2_ptsz(void* to, CUdeviceptr from, std::size_t size, CUstream s) {
  return cuMemcpyDtoHAsync_v2(to, from, size, own(s));
}
CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream s) {
  return cuMemcpyDtoDAsync_v2(to, from, size, own(s));
}
CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                std::size_t size, CUstream s) {
  return cuMemcpyPeerAsync(to, to_context, from, from_context, size, own(s));
}
CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* copy, CUstream s) { return cuMemcpy2DAsync_v2(copy, own(s)); }
CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D* copy, CUstream s) { return cuMemcpy3DAsync_v2(copy, own(s)); }

CUresult cuMemAllocAsync_ptsz(CUdeviceptr* out, std::size_t size, CUstream s) {
  return cuMemAllocAsync(out, size, own(s));
}
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, std::size_t size, CUmemoryPool pool, CUstream s) {
  return cuMemAllocFromPoolAsync(out, size, pool, own(s));
}
CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream s) { return cuMemFreeAsync(address, own(s)); }
CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr address, std::size_t count, CUdevice device, CUstream s) {
  return cuMemPrefetchAsync(address, count, device, own(s));
}
CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr address, std::size_t count, CUmemLocation location, unsigned flags,
                                    CUstream s) {
  return cuMemPrefetchAsync_v2(address, count, location, flags, own(s));
}

CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo* list, unsigned count, CUstream s) {
  return cuMemMapArrayAsync(list, count, own(s));
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned shared, CUstream s, void** parameters,
                             void** extra) {
  return cuLaunchKernel(f, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, own(s), parameters, extra);
}
CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                        CUstream s, void** parameters) {
  return cuLaunchCooperativeKernel(f, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, own(s), parameters);
}
