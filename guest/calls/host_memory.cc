// Pinned memory: blocks of the arena.
#include "guest/calls/calls.h"
#include "guest/calls/stub.h"
#include "guest/log.h"
#include "guest/process/process.h"

namespace guest::calls {
namespace {

constexpr unsigned known_host_flags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;

Place place_of(const void* at) { return session()->addresses.find(reinterpret_cast<std::uint64_t>(at)); }

std::byte* allocate(std::size_t bytes, unsigned flags, Context& context) {
  Session& s = *session();
  std::byte* at = s.arena->allocate(bytes);
  if (at == nullptr) return nullptr;
  s.addresses.add({.kind = Place::Kind::Pinned,
                   .flags = flags,
                   .start = reinterpret_cast<std::uint64_t>(at),
                   .bytes = bytes,
                   .id = s.arena->offset(at) | 1ULL << 62,  // differs from every id of device memory
                   .context = &context});
  return at;
}

}  // namespace

CUresult cuMemHostAlloc(void** at, std::size_t bytes, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  if (at == nullptr || (flags & ~known_host_flags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) return *at = nullptr, CUDA_SUCCESS;
  *at = allocate(bytes, flags, *context);
  if (*at != nullptr) return CUDA_SUCCESS;
  if (!session()->usable()) return CUDA_ERROR_DEVICE_UNAVAILABLE;  // the worker could not register more
  const Arena::Room room = session()->arena->room();
  log(Level::Warn,
      "no room for %zu bytes of pinned memory: %llu bytes of this session's arena are free, the largest piece has "
      "%llu; "
      "give the VM a larger region_size, or fewer slots",
      bytes, static_cast<unsigned long long>(room.bytes), static_cast<unsigned long long>(room.largest));
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAllocHost_v2(void** at, std::size_t bytes) { return calls::cuMemHostAlloc(at, bytes, 0); }

CUresult cuMemFreeHost(void* at) {
  Context* context = nullptr;
  const CUresult entered = enter(context);
  if (entered != CUDA_SUCCESS && entered != CUDA_ERROR_INVALID_CONTEXT) return entered;
  if (at == nullptr) return CUDA_SUCCESS;
  const Place block = place_of(at);
  if (block.kind != Place::Kind::Pinned || block.registered_at != 0) return CUDA_ERROR_INVALID_VALUE;
  // CUDA's own free waits for the copies under way, which may still use the block.
  const CUcontext owner = block.context == nullptr ? nullptr : block.context->handle;
  if (const CUresult r = calls::cuCtxSynchronize_v2(context == nullptr ? owner : nullptr); r != CUDA_SUCCESS) return r;
  if (!session()->addresses.take(reinterpret_cast<std::uint64_t>(at), Place::Kind::Pinned))
    return CUDA_ERROR_INVALID_VALUE;
  session()->arena->free(at);  // another block may take its room from here on
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device_at, void* at, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  if (device_at == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Place place = place_of(at);
  // CUDA takes a mapping of virtual memory for memory of both sides.
  if (place.kind != Place::Kind::Pinned && place.reservation == 0) return CUDA_ERROR_INVALID_VALUE;
  *device_at = session()->addresses.on_device(place, reinterpret_cast<CUdeviceptr>(at));
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned* flags, void* at) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Place block = place_of(at);
  if (block.kind != Place::Kind::Pinned) return CUDA_ERROR_INVALID_VALUE;
  // Every block is portable and mapped, but the driver reports only the latter; of registered memory also the former.
  const unsigned reported = block.registered_at == 0 ? CU_MEMHOSTALLOC_WRITECOMBINED : CU_MEMHOSTREGISTER_PORTABLE;
  *flags = (block.flags & reported) | CU_MEMHOSTALLOC_DEVICEMAP;
  return CUDA_SUCCESS;
}

}  // namespace guest::calls
