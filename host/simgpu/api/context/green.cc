// Calls about green contexts.
#include "host/simgpu/api/context/green.h"

#include <algorithm>
#include <bitset>

#include "host/simgpu/api/context/green_resources.h"
#include "host/simgpu/api/device/device.h"
#include "host/simgpu/api/driver.h"
#include "host/simgpu/api/graph/capture.h"
#include "host/simgpu/api/stream/streams.h"
#include "ring/base/mutex.h"

namespace simgpu {

std::shared_ptr<GreenContext> green_of(Driver& driver, const std::shared_ptr<Context>& context) {
  if (context == nullptr || !context->is_primary) return nullptr;
  for (const std::shared_ptr<GreenContext>& green : driver.greens.all())
    if (!context.owner_before(green) && !green.owner_before(context)) return green;
  return nullptr;
}

std::shared_ptr<GreenContext> green_of(Driver& driver, const Stream& stream) {
  const bool special = stream.handle == CU_STREAM_LEGACY || stream.handle == CU_STREAM_PER_THREAD;
  return special ? green_of(driver, driver.current_shared()) : stream.green;
}

Multiprocessors multiprocessors_of(Driver& driver, const Stream& stream) {
  const std::shared_ptr<GreenContext> green = green_of(driver, stream);
  return green == nullptr ? all_of_device(0) : green->has;
}

CUcontext name_of(Driver& driver, const std::shared_ptr<Context>& context) {
  const std::shared_ptr<GreenContext> green = green_of(driver, context);
  return green == nullptr ? context->handle : green->name;
}

namespace {

// Joins the parts, which may overlap. If the parts are not adjacent, only the count of the result is exact.
Multiprocessors joined(const ResourceDescription& description) {
  Multiprocessors all = description.parts.front();
  std::bitset<device_multiprocessors> in;
  for (const Multiprocessors& part : description.parts) {
    all.first = std::min(all.first, part.first);
    for (unsigned i = 0; i < part.count; ++i) in.set(part.first + i);
  }
  all.count = static_cast<unsigned>(in.count());
  all.split = 0;
  return all;
}

template <class F>
CUresult with_green(CUgreenCtx handle, F&& call) {
  return with_driver([&](Driver& driver) {
    const std::shared_ptr<GreenContext> green = driver.greens.find(handle);
    if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return in_context(driver, *green->primary, [&](Driver&, Context&) { return call(driver, green); });
  });
}

std::shared_ptr<Context> as_context(const std::shared_ptr<GreenContext>& green) {
  return {green, green->primary.get()};
}

CUresult retain_primary(CUdevice device) {
  CUcontext primary = nullptr;
  return cuDevicePrimaryCtxRetain(&primary, device);
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

CUresult cuGreenCtxCreate(CUgreenCtx* phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned flags) {
  return with_driver([&](Driver& driver) {
    if (phCtx == nullptr || flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<ResourceDescription> description = driver.descriptions.find(desc);
    if (description == nullptr && desc != nullptr) return CUDA_ERROR_INVALID_VALUE;
    Device* device = driver.device(dev);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const Multiprocessors has = description == nullptr ? all_of_device(dev) : joined(*description);
    if (has.device != dev) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = retain_primary(dev); error != CUDA_SUCCESS) return error;
    const auto green = std::make_shared<GreenContext>();
    green->primary = device->primary;
    green->id = driver.next_id();
    green->has = has;
    green->name = driver.contexts.insert(as_context(green));
    *phCtx = green->handle = driver.greens.insert(green);
    return CUDA_SUCCESS;
  });
}

// The handles of the green context's streams remain known, and calls on them report a destroyed context.
CUresult cuGreenCtxDestroy(CUgreenCtx hCtx) {
  return with_driver([&](Driver& driver) {
    const std::shared_ptr<GreenContext> green = driver.greens.find(hCtx);
    if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    driver.contexts.remove(green->name);
    driver.greens.remove(hCtx);
    green->ended.store(true, std::memory_order_release);
    return cuDevicePrimaryCtxRelease_v2(green->has.device);
  });
}

CUresult cuCtxFromGreenCtx(CUcontext* pContext, CUgreenCtx hCtx) {
  if (pContext == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_green(hCtx, [&](Driver&, const std::shared_ptr<GreenContext>& green) {
    *pContext = green->name;
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long* greenCtxId) {
  if (greenCtxId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto tell = [&](Driver&, const std::shared_ptr<GreenContext>& green) {
    *greenCtxId = green->id;
    return CUDA_SUCCESS;
  };
  if (greenCtx != nullptr) return with_green(greenCtx, tell);
  return with_context([&](Driver& driver, Context&) {
    const std::shared_ptr<GreenContext> green = green_of(driver, driver.current_shared());
    return green == nullptr ? CUDA_ERROR_INVALID_CONTEXT : tell(driver, green);
  });
}

CUresult cuGreenCtxStreamCreate(CUstream* phStream, CUgreenCtx greenCtx, unsigned flags, int priority) {
  if (phStream == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_green(greenCtx, [&](Driver& driver, const std::shared_ptr<GreenContext>& green) {
    if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    const int clamped = std::clamp(priority, greatest_stream_priority, 0);
    const std::shared_ptr<Stream> stream = make_stream(driver, as_context(green), flags, clamped);
    *phStream = stream->handle = driver.streams.insert(stream);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx* phCtx) {
  if (phCtx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_context_of(hStream, [&](Driver& driver, Context& context) {
    const std::shared_ptr<Stream> stream = stream_of(driver, context, hStream);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const std::shared_ptr<GreenContext> green = green_of(driver, *stream);
    *phCtx = green == nullptr ? nullptr : green->handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent) {
  if (hCtx == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return with_green(hCtx, [&](Driver& driver, const std::shared_ptr<GreenContext>& green) {
    const std::shared_ptr<Event> event = driver.events.find(hEvent);
    if (event == nullptr || event->context.get() != green->primary.get()) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult refused = refuse_in_capturing(driver, *green->primary, green.get());
    if (refused != CUDA_SUCCESS) return refused;
    const ring::RecursiveLock graphs(driver.graph_mutex);
    event->captured = nullptr;
    const ring::MutexLock lock(event->mutex);
    event->record = record_all(driver, *green);
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent) {
  if (hCtx == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return with_green(hCtx, [&](Driver& driver, const std::shared_ptr<GreenContext>& green) {
    const std::shared_ptr<Event> event = driver.events.find(hEvent);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    CUresult refused = refuse_in_capturing(driver, *green->primary, green.get());
    if (refused == CUDA_SUCCESS) refused = refuse_captured(driver, *event);
    if (refused != CUDA_SUCCESS) return refused;
    Ticket recorded;
    {
      const ring::MutexLock lock(event->mutex);
      recorded = event->record;
    }
    hold_back(driver, *green, recorded);
    return CUDA_SUCCESS;
  });
}
