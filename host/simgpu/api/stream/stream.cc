// Calls for streams, and for host functions in streams.
#include "host/simgpu/api/cuda_api.h"
#include "ring/base/mutex.h"

#include <algorithm>

#include "host/simgpu/api/graph/capture.h"
#include "host/simgpu/api/stream/callback.h"
#include "host/simgpu/api/stream/streams.h"

using namespace simgpu;

namespace {

// Wraps a call on a stream; `call` receives the stream of the handle.
template <class F>
CUresult with_stream(CUstream handle, F&& call) {
  return with_context_of(handle, [&](Driver& driver, Context& context) {
    const std::shared_ptr<Stream> stream = stream_of(driver, context, handle);
    return stream == nullptr ? CUDA_ERROR_INVALID_HANDLE : call(driver, *stream);
  });
}

}  // namespace

CUresult cuStreamCreateWithPriority(CUstream* phStream, unsigned flags, int priority) {
  if (phStream == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_context([&](Driver& driver, Context&) {
    if ((flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0) return CUDA_ERROR_INVALID_VALUE;
    auto stream =
        make_stream(driver, driver.current_shared(), flags, std::clamp(priority, greatest_stream_priority, 0));
    stream->handle = driver.streams.insert(stream);
    *phStream = stream->handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamCreate(CUstream* phStream, unsigned Flags) { return cuStreamCreateWithPriority(phStream, Flags, 0); }

// Destroying a stream does not affect its work in flight.
CUresult cuStreamDestroy_v2(CUstream hStream) {
  if (hStream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (hStream == nullptr) return with_driver([](Driver&) { return CUDA_ERROR_INVALID_HANDLE; });
  return with_context_of(hStream, [&](Driver& driver, Context&) {
    const bool special = hStream == CU_STREAM_LEGACY || hStream == CU_STREAM_PER_THREAD;
    const std::shared_ptr<Stream> stream = special ? nullptr : driver.streams.remove(hStream);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    forget_stream(driver, *stream);
    const ring::MutexLock order(driver.schedule.order());
    stream->destroyed = true;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamDestroy(CUstream hStream) { return cuStreamDestroy_v2(hStream); }

CUresult cuStreamQuery(CUstream hStream) {
  return with_stream(hStream, [](Driver& driver, Stream& stream) {
    if (const CUresult error = refuse_question(driver, stream); error != CUDA_SUCCESS) return error;
    for (const Ticket& work : pending(driver, stream))
      if (work != nullptr && !work->done()) return CUDA_ERROR_NOT_READY;
    driver.flush_output();
    return driver.fault();
  });
}

CUresult cuStreamSynchronize(CUstream hStream) {
  return with_stream(hStream, [](Driver& driver, Stream& stream) {
    const CUresult error = refuse_question(driver, stream);
    return error == CUDA_SUCCESS ? wait_for(driver, pending(driver, stream)) : error;
  });
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned Flags) {
  return with_context_of(hStream, [&](Driver& driver, Context& context) {
    const std::shared_ptr<Stream> stream = stream_of(driver, context, hStream);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const std::shared_ptr<Event> event = driver.events.find(hEvent);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!event->context->active.load(std::memory_order_acquire)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if ((Flags & ~unsigned{CU_EVENT_WAIT_EXTERNAL}) != 0) return CUDA_ERROR_INVALID_VALUE;
    const bool external = Flags == CU_EVENT_WAIT_EXTERNAL;
    CUresult captured = CUDA_SUCCESS;
    if (capture_wait(driver, stream, event, external, captured)) return captured;
    if (external) return CUDA_ERROR_ILLEGAL_STATE;
    Ticket recorded;
    {
      const ring::MutexLock lock(event->mutex);
      recorded = event->record;
    }
    if (recorded != nullptr) post(driver, *stream, {}, Run::UnlessFailed, {recorded});
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned* flags) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(hStream, [&](Driver& driver, Stream& stream) {
    *flags = stream.flags;
    return refuse_in_capture(driver, stream);
  });
}

CUresult cuStreamGetPriority(CUstream hStream, int* priority) {
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(hStream, [&](Driver&, Stream& stream) {
    *priority = stream.priority;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetId(CUstream hStream, unsigned long long* streamId) {
  if (streamId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(hStream, [&](Driver& driver, Stream& stream) {
    *streamId = stream.id;
    return refuse_in_capture(driver, stream);
  });
}

// For a stream of a green context, this call returns the green context's handle.
CUresult cuStreamGetCtx(CUstream hStream, CUcontext* pctx) {
  if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(hStream, [&](Driver& driver, Stream& stream) {
    const std::shared_ptr<GreenContext> green = green_of(driver, stream);
    *pctx = green == nullptr ? stream.context->handle : green->name;
    return CUDA_SUCCESS;
  });
}

// As cuda.h documents, the per-thread stream never belongs to a green context.
CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx) {
  if (pCtx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(hStream, [&](Driver& driver, Stream& stream) {
    const std::shared_ptr<GreenContext> green = green_of(driver, stream);
    if (green != nullptr && hStream == CU_STREAM_PER_THREAD) return CUDA_ERROR_INVALID_HANDLE;
    *pCtx = stream.context->handle;
    if (pGreenCtx != nullptr) *pGreenCtx = green == nullptr ? nullptr : green->handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetDevice(CUstream hStream, CUdevice* device) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(hStream, [&](Driver&, Stream& stream) {
    return device == nullptr ? CUDA_ERROR_INVALID_VALUE : cuCtxGetDevice_v2(device, stream.context->handle);
  });
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void* userData) {
  if (fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(hStream, [&](Driver& driver, Stream& stream) {
    if (is_captured(driver, stream)) return capture_node(driver, stream, HostWork{fn, userData});
    post(driver, stream, [&driver, fn, userData] { run_callback(driver, [&] { fn(userData); }); });
    return CUDA_SUCCESS;
  });
}

namespace {

// Unlike a host function, a callback also runs after a failure, and receives the error. The callback receives the
// stream handle that the program passed.
CUresult add_callback(CUstream stream_handle, CUstream named, CUstreamCallback callback, void* data, unsigned flags) {
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(stream_handle, [&](Driver& driver, Stream& stream) {
    const auto call = [&driver, named, callback, data] {
      run_callback(driver, [&] { callback(named, driver.fault(), data); });
    };
    post(driver, stream, call, Run::Always);
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void* userData, unsigned flags) {
  return add_callback(hStream, hStream, callback, userData, flags);
}
CUresult cuStreamAddCallback_ptsz(CUstream hStream, CUstreamCallback callback, void* userData, unsigned flags) {
  return add_callback(own(hStream), hStream, callback, userData, flags);
}
