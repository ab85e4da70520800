// Pinned memory: blocks of the arena.
#include "guest/base/log.h"
#include "guest/calls/calls.h"
#include "guest/calls/captured.h"
#include "guest/calls/memory/arena_block.h"
#include "guest/calls/refusal.h"
#include "guest/calls/stub.h"
#include "guest/process/process.h"

namespace guest::calls {
namespace {

constexpr unsigned known_host_flags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;

Place place_of(const void* at) { return session()->memory.addresses.find(reinterpret_cast<std::uint64_t>(at)); }

}  // namespace

CUresult cuMemHostAlloc(void** at, std::size_t bytes, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  if (const CUresult r = disturb_captures(); r != CUDA_SUCCESS) return r;
  if (at == nullptr || (flags & ~known_host_flags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) {
    *at = nullptr;
    return CUDA_SUCCESS;
  }
  *at = allocate_block(Place::Kind::Pinned, bytes, flags, *context);
  return *at != nullptr ? CUDA_SUCCESS : no_block();
}

CUresult cuMemAllocHost_v2(void** at, std::size_t bytes) { return calls::cuMemHostAlloc(at, bytes, 0); }

CUresult cuMemFreeHost(void* at) {
  Context* context = nullptr;
  const CUresult entered = enter(context);
  if (entered != CUDA_SUCCESS && entered != CUDA_ERROR_INVALID_CONTEXT) return entered;
  if (const CUresult r = disturb_captures(); r != CUDA_SUCCESS) return r;
  if (at == nullptr) return CUDA_SUCCESS;
  if (place_of(at).registered_at != 0) return CUDA_ERROR_INVALID_VALUE;
  return free_block(reinterpret_cast<std::uint64_t>(at), Place::Kind::Pinned, context);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device_at, void* at, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  if (device_at == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Place place = place_of(at);
  // CUDA treats a mapping of virtual memory as memory of both host and device.
  if (place.kind != Place::Kind::Pinned && place.reservation == 0) return CUDA_ERROR_INVALID_VALUE;
  *device_at = session()->memory.addresses.on_device(place, reinterpret_cast<CUdeviceptr>(at));
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned* flags, void* at) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Place block = place_of(at);
  if (block.kind != Place::Kind::Pinned && block.kind != Place::Kind::Managed) return CUDA_ERROR_INVALID_VALUE;
  // Every block is portable and mapped, but the driver reports "portable" only for registered memory.
  const unsigned reported = block.registered_at == 0 ? CU_MEMHOSTALLOC_WRITECOMBINED : CU_MEMHOSTREGISTER_PORTABLE;
  *flags = (block.flags & reported) | CU_MEMHOSTALLOC_DEVICEMAP;
  return CUDA_SUCCESS;
}

}  // namespace guest::calls
