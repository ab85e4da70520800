// Calls about events.
#include "host/simgpu/api/cuda_api.h"

#include <chrono>

#include "host/simgpu/api/context.h"
#include "host/simgpu/api/streams.h"

using namespace simgpu;

namespace {

Ticket record_of(Event& event) {
  const std::lock_guard lock(event.mutex);
  return event.record;
}

template <class F>
CUresult with_event(CUevent handle, F&& call) {
  return with_context([&](Driver& driver, Context&) {
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
  return with_context([&](Driver& driver, Context&) {
    return driver.events.remove(hEvent) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy(CUevent hEvent) { return cuEventDestroy_v2(hEvent); }

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned flags) {
  return with_context([&](Driver& driver, Context& context) {
    const std::shared_ptr<Event> event = driver.events.find(hEvent);
    const std::shared_ptr<Stream> stream = stream_of(driver, context, hStream);
    if (event == nullptr || stream == nullptr || event->context.get() != &context) return CUDA_ERROR_INVALID_HANDLE;
    if ((flags & ~unsigned{CU_EVENT_RECORD_EXTERNAL}) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (flags == CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_ILLEGAL_STATE;  // no stream is being captured
    const std::lock_guard lock(event->mutex);
    event->record = post(driver, *stream, {});
    return CUDA_SUCCESS;
  });
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream) { return cuEventRecordWithFlags(hEvent, hStream, 0); }

CUresult cuEventQuery(CUevent hEvent) {
  if (hEvent == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return with_event(hEvent, [](Driver& driver, Event& event) {
    const Ticket record = record_of(event);
    if (record != nullptr && !record->done()) return CUDA_ERROR_NOT_READY;
    return driver.fault();
  });
}

CUresult cuEventSynchronize(CUevent hEvent) {
  if (hEvent == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return with_event(hEvent, [](Driver& driver, Event& event) { return wait_for(driver, {record_of(event)}); });
}

CUresult cuEventElapsedTime_v2(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  if (pMilliseconds == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return with_context([&](Driver& driver, Context&) {
    const std::shared_ptr<Event> start = driver.events.find(hStart), end = driver.events.find(hEnd);
    if (start == nullptr || end == nullptr) return CUDA_ERROR_INVALID_HANDLE;
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

namespace {

// Calls about a context, which need not be current, and one of its events.
template <class F>
CUresult with_context_and_event(CUcontext context_handle, CUevent handle, F&& call) {
  return with_driver([&](Driver& driver) {
    CUresult error;
    const std::shared_ptr<Context> context = context_named(driver, context_handle, &error);
    if (context == nullptr) return error;
    const std::shared_ptr<Event> event = driver.events.find(handle);
    return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : call(driver, context, *event);
  });
}

}  // namespace

CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent) {
  return with_context_and_event(hCtx, hEvent,
                                [](Driver& driver, const std::shared_ptr<Context>& context, Event& event) {
                                  if (event.context != context) return CUDA_ERROR_INVALID_HANDLE;
                                  const std::vector<Ticket> all = pending(driver, *context);
                                  const std::lock_guard lock(event.mutex);
                                  event.record = driver.schedule.submit({}, all, Schedule::Who::Pool);
                                  return CUDA_SUCCESS;
                                });
}

CUresult cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent) {
  return with_context_and_event(
      hCtx, hEvent, [](Driver& driver, const std::shared_ptr<Context>& context, Event& event) {
        const Ticket recorded = record_of(event);
        const std::lock_guard order(driver.schedule.order());
        if (recorded != nullptr && !recorded->done())
          context->awaited = driver.schedule.submit({}, {context->awaited, recorded}, Schedule::Who::Pool);
        return CUDA_SUCCESS;
      });
}
