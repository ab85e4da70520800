// Calls that allocate and free memory in stream order.
#include "host/simgpu/api/cuda_api.h"

#include "host/simgpu/api/graph/capture.h"
#include "host/simgpu/api/memory/memory.h"
#include "host/simgpu/api/memory/memory_pool.h"
#include "host/simgpu/api/memory/pool_places.h"
#include "host/simgpu/api/stream/streams.h"

using namespace simgpu;

namespace {

// Fails in a captured stream, since the simulation has no memory nodes. In another stream the capture modes decide, as
// for cuMemAlloc.
CUresult may_allocate(Driver& driver, Stream& stream) {
  if (is_captured(driver, stream)) return CUDA_ERROR_NOT_SUPPORTED;
  const CUresult unsafe = refuse_as_unsafe();
  return unsafe == CUDA_SUCCESS ? refuse_in_capture(driver, stream) : unsafe;
}

CUresult allocate_from(CUdeviceptr* out, std::size_t size, CUmemoryPool handle, CUstream stream_handle) {
  return with_context_of(stream_handle, [&](Driver& driver, Context& context) {
    const std::shared_ptr<Stream> stream = stream_of(driver, context, stream_handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult error = may_allocate(driver, *stream); error != CUDA_SUCCESS) return error;
    const std::shared_ptr<MemoryPool> pool =
        driver.pools.find(handle == nullptr ? current_pool(context.device) : handle);
    if (out == nullptr || pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = 0;
    if (size == 0) return CUDA_SUCCESS;
    Ticket after;
    Address start = pool->allocate(size, stream, after);
    if (start == 0 && pool->awaits_frees()) {
      wait_for(driver, pending(driver, *stream));
      start = pool->allocate(size, stream, after);
    }
    if (start == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    if (after != nullptr) come_after(driver, *stream, after);
    enter(driver, context, MemoryKind::Pool, start, size, pool);
    *out = start;
    return CUDA_SUCCESS;
  });
}

// Frees memory in stream order. Memory of cuMemAlloc, which has no pool, can be freed in stream order as well.
void free_in_stream(Driver& driver, const std::shared_ptr<Stream>& stream, const Allocation& allocation) {
  if (allocation.pool == nullptr) {
    allocation.device->space.set_leaving(allocation.start, true);
    post(
        driver, *stream, [&driver, allocation] { give_back(driver, allocation); }, Run::Always);
    return;
  }
  const auto leaving = allocation.pool->leave(allocation.start, allocation.size, stream);
  const auto free_now = [pool = allocation.pool, leaving] { pool->leave_now(leaving); };
  allocation.pool->set_ticket(*leaving, post(driver, *stream, free_now, Run::Always));
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* dptr, std::size_t bytesize, CUstream hStream) {
  return allocate_from(dptr, bytesize, nullptr, hStream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* dptr, std::size_t bytesize, CUmemoryPool pool, CUstream hStream) {
  if (pool == nullptr) return with_context([](Driver&, Context&) { return CUDA_ERROR_INVALID_VALUE; });
  return allocate_from(dptr, bytesize, pool, hStream);
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  return with_context_of(hStream, [&](Driver& driver, Context& context) {
    const std::shared_ptr<Stream> stream = stream_of(driver, context, hStream);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult error = may_allocate(driver, *stream); error != CUDA_SUCCESS) return error;
    if (dptr == 0) return CUDA_SUCCESS;
    const auto there = driver.memory.find(dptr);
    if (there && there->start == dptr && there->kind == MemoryKind::Managed) return CUDA_ERROR_NOT_SUPPORTED;
    const auto wanted = [](const Allocation& a) { return a.kind == MemoryKind::Pool || a.kind == MemoryKind::Device; };
    const auto allocation = driver.memory.take(dptr, wanted);
    if (!allocation) return CUDA_ERROR_INVALID_VALUE;
    free_in_stream(driver, stream, *allocation);
    return CUDA_SUCCESS;
  });
}
