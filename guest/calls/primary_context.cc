// Primary contexts: one for each device, whose uses are counted here; the worker holds the real ones from its start. Their
// end is CUSTOM because it takes along what this process remembers of the context.
#include "guest/calls/calls.h"
#include "guest/calls/context_flags.h"
#include "guest/marshal/exchange.h"
#include "ring/abi/context_storage.h"
#include "ring/api/records.h"

namespace guest::calls {
namespace {

PrimaryContext& primary_of(CUdevice device) { return primary(static_cast<std::uint32_t>(device)); }

// Streams, events, modules and memory of the device are gone afterwards; libraries and kernels stay, as in the driver.
// Posted where nobody waits for it (a program's end). Where nothing was sent the context goes on.
Sent reset_primary(std::uint32_t device, api::Way way) {
  Session& s = *session();
  if (!s.attached()) return {CUDA_ERROR_DEVICE_UNAVAILABLE, {}};
  cuabi::storage_release(reinterpret_cast<CUcontext>(primary(device).handle));
  if (!wait_for_all(this_channel())) return {CUDA_ERROR_DEVICE_UNAVAILABLE, {}};
  const api::ResetRecord record{.device = primary(device).host_device};
  const Sent sent = send_record(api::id_of::cuDevicePrimaryCtxReset_v2, way, device, record);
  if (sent.use.position == 0) return sent;
  for (Object* o : s.objects.of_context(device)) {
    s.allocations.drop_owned(o->id.load(std::memory_order_relaxed));  // a module's globals
    s.objects.retire(*o, sent.use);
  }
  s.allocations.drop_all(device);
  return sent;
}

}  // namespace

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!session()->attached()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  PrimaryContext& p = primary_of(device);
  std::lock_guard lock(p.mutex);
  // After a fault no context begins; one that lives can still be had.
  if (const CUresult fault = session()->fault();
      fault != CUDA_SUCCESS && p.retained.load(std::memory_order_relaxed) == 0)
    return fault;
  p.retained.fetch_add(1, std::memory_order_relaxed);
  *context = reinterpret_cast<CUcontext>(p.handle);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  PrimaryContext& p = primary_of(device);
  std::lock_guard lock(p.mutex);
  if (p.retained.load(std::memory_order_relaxed) == 0) return CUDA_ERROR_INVALID_CONTEXT;
  // Nobody waits for the end of a context whose last user has let go: programs do this on their way out.
  const bool last = p.retained.load(std::memory_order_relaxed) == 1;
  const CUresult result = last ? reset_primary(static_cast<std::uint32_t>(device), api::Posted).result : CUDA_SUCCESS;
  p.retained.fetch_sub(1, std::memory_order_relaxed);
  return result;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return calls::cuDevicePrimaryCtxRelease_v2(device); }

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  if (!valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  primary_of(device).flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  if (primary_of(device).retained.load(std::memory_order_relaxed) != 0) return CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
  return calls::cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = primary_of(device).flags;
  *active = primary_of(device).retained.load(std::memory_order_relaxed) != 0;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (device < 0 || static_cast<std::uint32_t>(device) >= device_count()) return CUDA_ERROR_INVALID_DEVICE;
  PrimaryContext& p = primary(static_cast<std::uint32_t>(device));
  std::lock_guard lock(p.mutex);
  if (p.retained.load(std::memory_order_relaxed) == 0) return CUDA_SUCCESS;
  const Sent sent = reset_primary(static_cast<std::uint32_t>(device), api::Way::Waited);
  if (sent.use.position != 0) p.retained.store(0, std::memory_order_relaxed);
  return sent.result;
}

}  // namespace guest::calls
