// Calls about streams, and the host's functions in them.
#include "host/simgpu/api/cuda_api.h"

#include <algorithm>
#include <mutex>

#include "host/simgpu/api/streams.h"

using namespace simgpu;

namespace {

// `call` gets the stream that `handle` names.
template <class F>
CUresult with_stream(CUstream handle, F&& call) {
  return with_context_of(handle, [&](Driver& driver, Context& context) {
    const std::shared_ptr<Stream> stream = stream_of(driver, context, handle);
    return stream == nullptr ? CUDA_ERROR_INVALID_HANDLE : call(driver, *stream);
  });
}

// While the program's function runs, its calls into the driver are refused, as the real one does.
// One at a time in a process, as NVIDIA's driver calls them (H200: four of 0.2 s in four streams take 0.8 s).
class InCallback {
 public:
  explicit InCallback(Driver& driver) : lock_(one_at_a_time()), state_(driver.thread()) { state_.in_callback = true; }
  ~InCallback() { state_.in_callback = false; }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;

 private:
  static std::mutex& one_at_a_time() {
    static auto* const mutex = new std::mutex;  // a function may end the process
    return *mutex;
  }

  const std::lock_guard<std::mutex> lock_;
  ThreadState& state_;
};

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

// Work in it goes on.
CUresult cuStreamDestroy_v2(CUstream hStream) {
  if (hStream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (hStream == nullptr) return with_driver([](Driver&) { return CUDA_ERROR_INVALID_HANDLE; });
  return with_context_of(hStream, [&](Driver& driver, Context&) {
    const bool special = hStream == CU_STREAM_LEGACY || hStream == CU_STREAM_PER_THREAD;
    const std::shared_ptr<Stream> stream = special ? nullptr : driver.streams.remove(hStream);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const std::lock_guard order(driver.schedule.order());
    stream->destroyed = true;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamDestroy(CUstream hStream) { return cuStreamDestroy_v2(hStream); }

CUresult cuStreamQuery(CUstream hStream) {
  return with_stream(hStream, [](Driver& driver, Stream& stream) {
    for (const Ticket& work : pending(driver, stream))
      if (work != nullptr && !work->done()) return CUDA_ERROR_NOT_READY;
    driver.flush_output();
    return driver.fault();
  });
}

CUresult cuStreamSynchronize(CUstream hStream) {
  return with_stream(hStream, [](Driver& driver, Stream& stream) { return wait_for(driver, pending(driver, stream)); });
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned Flags) {
  return with_stream(hStream, [&](Driver& driver, Stream& stream) {
    const std::shared_ptr<Event> event = driver.events.find(hEvent);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!event->context->active.load(std::memory_order_acquire)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if ((Flags & ~unsigned{CU_EVENT_WAIT_EXTERNAL}) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (Flags == CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_ILLEGAL_STATE;  // no stream is being captured
    Ticket recorded;
    {
      const std::lock_guard lock(event->mutex);
      recorded = event->record;
    }
    if (recorded != nullptr) post(driver, stream, {}, Run::UnlessFailed, {recorded});
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned* flags) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(hStream, [&](Driver&, Stream& stream) {
    *flags = stream.flags;
    return CUDA_SUCCESS;
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
  return with_stream(hStream, [&](Driver&, Stream& stream) {
    *streamId = stream.id;
    return CUDA_SUCCESS;
  });
}

// Of a green context's stream, that one's name.
CUresult cuStreamGetCtx(CUstream hStream, CUcontext* pctx) {
  if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(hStream, [&](Driver& driver, Stream& stream) {
    const std::shared_ptr<GreenContext> green = green_of(driver, stream);
    *pctx = green == nullptr ? stream.context->handle : green->name;
    return CUDA_SUCCESS;
  });
}

// A thread has no stream of its own in a green context, cuda.h says.
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

// Nothing is ever captured here.
CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
  if (captureStatus == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(hStream, [&](Driver&, Stream&) {
    *captureStatus = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  });
}

// What else there is to say of a capture stays as it is without one.
CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus* captureStatus_out, cuuint64_t*, CUgraph*,
                                   const CUgraphNode**, const CUgraphEdgeData**, std::size_t*) {
  return cuStreamIsCapturing(hStream, captureStatus_out);
}
CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus* captureStatus_out, cuuint64_t*, CUgraph*,
                                   const CUgraphNode**, std::size_t*) {
  return cuStreamIsCapturing(hStream, captureStatus_out);
}
CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus* captureStatus_out, cuuint64_t*) {
  return cuStreamIsCapturing(hStream, captureStatus_out);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  static thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return with_driver([&](Driver&) {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, current);
    return CUDA_SUCCESS;
  });
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void* userData) {
  if (fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(hStream, [&](Driver& driver, Stream& stream) {
    post(driver, stream, [&driver, fn, userData] {
      const InCallback callback(driver);
      fn(userData);
    });
    return CUDA_SUCCESS;
  });
}

// Unlike a host function it runs after a failure, too, and gets its error.
CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void* userData, unsigned flags) {
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(hStream, [&](Driver& driver, Stream& stream) {
    const auto call = [&driver, hStream, callback, userData] {
      const InCallback inside(driver);
      callback(hStream, driver.fault(), userData);
    };
    post(driver, stream, call, Run::Always);
    return CUDA_SUCCESS;
  });
}
