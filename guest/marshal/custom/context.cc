// The end of a primary context. CUSTOM because it takes along what this process remembers of the context.
#include "guest/marshal/custom/custom.h"
#include "guest/marshal/exchange.h"
#include "guest/marshal/reset.h"
#include "ring/abi/context_storage.h"
#include "ring/api/records.h"

namespace guest {

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

CUresult custom::cuDevicePrimaryCtxReset_v2(CUdevice device) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (device < 0 || static_cast<std::uint32_t>(device) >= device_count()) return CUDA_ERROR_INVALID_DEVICE;
  PrimaryContext& p = primary(static_cast<std::uint32_t>(device));
  std::lock_guard lock(p.mutex);
  if (p.retained.load(std::memory_order_relaxed) == 0) return CUDA_SUCCESS;
  const Sent sent = reset_primary(static_cast<std::uint32_t>(device), api::Way::Waited);
  if (sent.use.position != 0) p.retained.store(0, std::memory_order_relaxed);
  return sent.result;
}

}  // namespace guest
