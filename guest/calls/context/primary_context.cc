// The primary context of each device. The guest counts how often a program retains a primary context. The worker keeps
// the driver's primary contexts from its start to its end.
#include "guest/calls/calls.h"
#include "guest/calls/context/context_end.h"
#include "guest/calls/context/context_flags.h"
#include "guest/process/process.h"
#include "ring/api/call.h"
#include "ring/base/mutex.h"

namespace guest::calls {
namespace {

Context& primary_of(CUdevice device) { return primary(static_cast<std::uint32_t>(device)); }

}  // namespace

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!session()->liveness().attached()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  Context& p = primary_of(device);
  ring::MutexLock lock(p.mutex);
  // After a fault a program can retain a living context, but it cannot begin a new one.
  if (const CUresult fault = session()->slot().fault();
      fault != CUDA_SUCCESS && p.uses.load(std::memory_order_relaxed) == 0)
    return fault;
  p.uses.fetch_add(1, std::memory_order_relaxed);
  *context = p.handle;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  Context& p = primary_of(device);
  ring::MutexLock lock(p.mutex);
  if (p.uses.load(std::memory_order_relaxed) == 0) return CUDA_ERROR_INVALID_CONTEXT;
  // The last release is posted: programs make this call when they exit, and no thread needs the result.
  const bool last = p.uses.load(std::memory_order_relaxed) == 1;
  const CUresult result =
      last ? end_context(p, api::id_of::cuDevicePrimaryCtxReset_v2, api::Posted).result : CUDA_SUCCESS;
  p.uses.fetch_sub(1, std::memory_order_relaxed);
  return result;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return calls::cuDevicePrimaryCtxRelease_v2(device); }

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  if (!valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  primary_of(device).flags = primary_of(device).flags_of_device = flags;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  if (primary_of(device).uses.load(std::memory_order_relaxed) != 0) return CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
  return calls::cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = primary_of(device).flags_of_device;
  *active = primary_of(device).uses.load(std::memory_order_relaxed) != 0;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  Context& p = primary_of(device);
  ring::MutexLock lock(p.mutex);
  if (p.uses.load(std::memory_order_relaxed) == 0) return CUDA_SUCCESS;
  const Sent sent = end_context(p, api::id_of::cuDevicePrimaryCtxReset_v2);
  if (sent.use.position != 0) p.uses.store(0, std::memory_order_relaxed), p.flags = p.flags_of_device = 0;
  return sent.result;
}

}  // namespace guest::calls
