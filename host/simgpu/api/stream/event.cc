// Calls for events.
#include "host/simgpu/api/cuda_api.h"
#include "ring/base/mutex.h"

#include <chrono>

#include "host/simgpu/api/context/context.h"
#include "host/simgpu/api/graph/capture.h"
#include "host/simgpu/api/stream/streams.h"

using namespace simgpu;

namespace {

Ticket record_of(Event& event) {
  const ring::MutexLock lock(event.mutex);
  return event.record;
}

bool is_captured(Driver& driver, const Event& event) {
  const ring::RecursiveLock lock(driver.graph_mutex);
  return event.captured != nullptr;
}

template <class F>
CUresult with_event(CUevent handle, F&& call) {
  return with_context_of(&Driver::events, handle, [&](Driver& driver, Context&) {
    const std::shared_ptr<Event> event = driver.events.find(handle);
    return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : call(driver, *event);
  });
}

}  // namespace

CUresult cuEventCreate(CUevent* phEvent, unsigned Flags) {
  return with_context([&](Driver& driver, Context&) {
    constexpr unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    const bool shared_and_timed = (Flags & CU_EVENT_INTERPROCESS) != 0 && (Flags & CU_EVENT_DISABLE_TIMING) == 0;
    if (phEvent == nullptr || (Flags & ~known) != 0 || shared_and_timed) return CUDA_ERROR_INVALID_VALUE;
    auto event = std::make_shared<Event>();
    event->context = driver.current_shared();
    event->flags = Flags;
    event->handle = driver.events.insert(event);
    *phEvent = event->handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy_v2(CUevent hEvent) {
  if (hEvent == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return with_context_of(&Driver::events, hEvent, [&](Driver& driver, Context&) {
    return driver.events.remove(hEvent) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy(CUevent hEvent) { return cuEventDestroy_v2(hEvent); }

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned flags) {
  return with_context_of(hStream, [&](Driver& driver, Context& context) {
    const std::shared_ptr<Event> event = driver.events.find(hEvent);
    const std::shared_ptr<Stream> stream = stream_of(driver, context, hStream);
    if (event == nullptr || stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!event->context->active.load(std::memory_order_acquire)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (event->context.get() != &context) return CUDA_ERROR_INVALID_HANDLE;
    if ((flags & ~unsigned{CU_EVENT_RECORD_EXTERNAL}) != 0) return CUDA_ERROR_INVALID_VALUE;
    const ring::RecursiveLock graphs(driver.graph_mutex);
    const bool external = flags == CU_EVENT_RECORD_EXTERNAL;
    if (stream->captured != nullptr) return capture_record(driver, *stream, event, external);
    if (external) return CUDA_ERROR_ILLEGAL_STATE;
    const ring::MutexLock lock(event->mutex);
    event->record = post(driver, *stream, {});
    event->captured = nullptr;
    return CUDA_SUCCESS;
  });
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream) { return cuEventRecordWithFlags(hEvent, hStream, 0); }

CUresult cuEventQuery(CUevent hEvent) {
  if (hEvent == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return with_event(hEvent, [](Driver& driver, Event& event) {
    if (const CUresult error = refuse_event_question(driver, event); error != CUDA_SUCCESS) return error;
    const Ticket record = record_of(event);
    if (record != nullptr && !record->done()) return CUDA_ERROR_NOT_READY;
    return driver.fault();
  });
}

CUresult cuEventSynchronize(CUevent hEvent) {
  if (hEvent == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return with_event(hEvent, [](Driver& driver, Event& event) {
    const CUresult error = refuse_event_question(driver, event);
    return error == CUDA_SUCCESS ? wait_for(driver, {record_of(event)}) : error;
  });
}

CUresult cuEventElapsedTime_v2(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  if (pMilliseconds == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return with_context_of(&Driver::events, hStart, [&](Driver& driver, Context&) {
    const std::shared_ptr<Event> start = driver.events.find(hStart), end = driver.events.find(hEnd);
    if (start == nullptr || end == nullptr || start->context != end->context) return CUDA_ERROR_INVALID_HANDLE;
    if (is_captured(driver, *start) || is_captured(driver, *end)) return CUDA_ERROR_INVALID_VALUE;
    const Ticket from = record_of(*start), to = record_of(*end);
    if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0 || from == nullptr || to == nullptr)
      return CUDA_ERROR_INVALID_HANDLE;
    if (!from->done() || !to->done()) return CUDA_ERROR_NOT_READY;
    *pMilliseconds = std::chrono::duration<float, std::milli>(to->finished() - from->finished()).count();
    return CUDA_SUCCESS;
  });
}

CUresult cuEventElapsedTime(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}

CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent) {
  return with_driver([&](Driver& driver) {
    if (hCtx == nullptr) return CUDA_ERROR_INVALID_CONTEXT;  // NULL does not stand for the current context here
    CUresult error;
    const std::shared_ptr<Context> context = context_named(driver, hCtx, &error);
    if (context == nullptr) return error;
    const std::shared_ptr<Event> event = driver.events.find(hEvent);
    if (event == nullptr || event->context != context) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult refused = refuse_in_capturing(driver, *context); refused != CUDA_SUCCESS) return refused;
    const ring::RecursiveLock graphs(driver.graph_mutex);
    event->captured = nullptr;
    const ring::MutexLock lock(event->mutex);
    event->record = record_all(driver, *context);
    return CUDA_SUCCESS;
  });
}

// The wait also applies to streams that do not exist yet. Therefore the context stores the event as its gate, instead
// of adding a wait to each stream.
CUresult cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent) {
  return with_driver([&](Driver& driver) {
    if (hCtx == nullptr) return CUDA_ERROR_INVALID_CONTEXT;  // NULL does not stand for the current context here
    CUresult error;
    const std::shared_ptr<Context> context = context_named(driver, hCtx, &error);
    if (context == nullptr) return error;
    const std::shared_ptr<Event> event = driver.events.find(hEvent);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult refused = refuse_in_capturing(driver, *context); refused != CUDA_SUCCESS) return refused;
    if (const CUresult refused = refuse_captured(driver, *event); refused != CUDA_SUCCESS) return refused;
    hold_back(driver, *context, record_of(*event));
    return CUDA_SUCCESS;
  });
}
