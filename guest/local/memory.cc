// Pinned memory, which is the arena's, and what is known of a pointer.
#include <cstring>

#include "guest/local/local.h"
#include "guest/local/refusal.h"
#include "guest/log.h"
#include "guest/marshal/custom/custom.h"
#include "guest/marshal/marshal.h"
#include "guest/session/process.h"

namespace guest::local {
namespace {

constexpr unsigned known_host_flags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;

// A pointer as CUDA sees it.
struct Place {
  enum class Kind : std::uint8_t { Unknown, Device, Pinned } kind = Kind::Unknown;
  std::uint64_t start = 0, bytes = 0, id = 0;
  std::uint32_t device = 0;
};

Place place_of(CUdeviceptr at) {
  Session& s = *session();
  if (const auto a = s.allocations.find(at)) return {Place::Kind::Device, a->start, a->bytes, a->id, a->device};
  if (const auto b = s.arena->find(reinterpret_cast<const void*>(at)))
    return {Place::Kind::Pinned, reinterpret_cast<std::uint64_t>(s.arena->at(b->offset)), b->bytes,
            b->offset | 1ULL << 62, 0};
  return {};
}

// Truth values are written as 32 bits: cudart reads so many.
template <class T>
CUresult give(void* to, T value) {
  std::memcpy(to, &value, sizeof value);  // NOLINT(bugprone-sizeof-expression): of the pointer, where T is one
  return CUDA_SUCCESS;
}

CUdeviceptr device_pointer(const Place& place, CUdeviceptr at) {
  if (place.kind != Place::Kind::Pinned) return at;
  Session& s = *session();
  return s.device_address(s.arena->offset(reinterpret_cast<const std::byte*>(at)));
}

CUresult known_attribute(void* data, CUpointer_attribute attribute, CUdeviceptr at, const Place& place) {
  const bool pinned = place.kind == Place::Kind::Pinned;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return give(data, reinterpret_cast<CUcontext>(primary(place.device).handle));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: return give(data, pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return give(data, device_pointer(place, at));
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return pinned ? give(data, reinterpret_cast<void*>(at)) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return give(data, 0u);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: return give(data, static_cast<unsigned long long>(place.id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return give(data, 0u);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return give(data, static_cast<int>(place.device));
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: return give(data, 0u);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return give(data, CUdeviceptr{place.start});
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return give(data, std::size_t{place.bytes});
    case CU_POINTER_ATTRIBUTE_MAPPED: return give(data, 1u);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: return give(data, 0ULL);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: return give(data, 0u);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return give(data, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return give(data, static_cast<void*>(nullptr));
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: return give(data, CUdeviceptr{place.start});
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: return give(data, std::size_t{place.bytes});
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: return give(data, static_cast<unsigned long long>(place.id));
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: return give(data, 0u);
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: return pinned ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

// cuPointerGetAttributes on memory that CUDA does not know: it has its own address, and nothing else.
CUresult unknown_attribute(void* data, CUpointer_attribute attribute, CUdeviceptr at) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return give(data, int{CU_DEVICE_INVALID});
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: return give(data, at);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: return give(data, 0u);
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: return give(data, std::uint64_t{0});
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult cuMemHostAlloc(void** at, std::size_t bytes, unsigned flags) {
  std::uint32_t device = 0;
  if (const CUresult r = enter(device); r != CUDA_SUCCESS) return r;
  if (at == nullptr || (flags & ~known_host_flags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) return *at = nullptr, CUDA_SUCCESS;
  *at = session()->arena->allocate(bytes, flags);
  if (*at != nullptr) return CUDA_SUCCESS;
  if (!session()->usable()) return CUDA_ERROR_DEVICE_UNAVAILABLE;  // more of it could not be registered
  const Arena::Room room = session()->arena->room();
  log(Level::Warn,
      "no room for %zu bytes of pinned memory: %llu bytes of this session's arena are free, the largest piece has "
      "%llu; "
      "give the VM a larger region_size, or fewer slots",
      bytes, static_cast<unsigned long long>(room.bytes), static_cast<unsigned long long>(room.largest));
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAllocHost_v2(void** at, std::size_t bytes) { return local::cuMemHostAlloc(at, bytes, 0); }

CUresult cuMemFreeHost(void* at) {
  std::uint32_t device = 0;
  const CUresult entered = enter(device);
  if (at == nullptr && entered == CUDA_ERROR_INVALID_CONTEXT) return CUDA_SUCCESS;  // nothing needs no context
  if (entered != CUDA_SUCCESS) return entered;
  if (at == nullptr) return CUDA_SUCCESS;
  if (!session()->arena->find(at)) return CUDA_ERROR_INVALID_VALUE;
  // Copies that are under way may still use it, as CUDA's own free waits for them.
  if (const CUresult r = Stub<api::id_of::cuCtxSynchronize>::call(); r != CUDA_SUCCESS) return r;
  return session()->arena->free(at) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device_at, void* at, unsigned flags) {
  std::uint32_t device = 0;
  if (const CUresult r = enter(device); r != CUDA_SUCCESS) return r;
  if (device_at == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Place place = place_of(reinterpret_cast<CUdeviceptr>(at));
  if (place.kind != Place::Kind::Pinned) return CUDA_ERROR_INVALID_VALUE;
  *device_at = device_pointer(place, reinterpret_cast<CUdeviceptr>(at));
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned* flags, void* at) {
  std::uint32_t device = 0;
  if (const CUresult r = enter(device); r != CUDA_SUCCESS) return r;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto block = session()->arena->find(at);
  if (!block) return CUDA_ERROR_INVALID_VALUE;
  // Every block is portable and mapped, but the driver tells the latter only.
  *flags = (block->flags & CU_MEMHOSTALLOC_WRITECOMBINED) | CU_MEMHOSTALLOC_DEVICEMAP;
  return CUDA_SUCCESS;
}

// The GPU maps the arena and nothing else of this process, so memory of the program's own cannot be registered. What is
// wrong with the arguments is told as everywhere.
CUresult cuMemHostRegister_v2(void* at, std::size_t bytes, unsigned flags) {
  constexpr unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY |
                             CU_MEMHOSTREGISTER_READ_ONLY;
  std::uint32_t device = 0;
  if (const CUresult r = enter(device); r != CUDA_SUCCESS) return r;
  if (at == nullptr || bytes == 0 || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (place_of(reinterpret_cast<CUdeviceptr>(at)).kind != Place::Kind::Unknown) return CUDA_ERROR_INVALID_VALUE;
  return refuse(refusal_of("cuMemHostRegister_v2"));
}

CUresult cuMemHostUnregister(void* at) {
  std::uint32_t device = 0;
  if (const CUresult r = enter(device); r != CUDA_SUCCESS) return r;
  const bool ours = place_of(reinterpret_cast<CUdeviceptr>(at)).kind != Place::Kind::Unknown;
  if (at == nullptr || ours) return CUDA_ERROR_INVALID_VALUE;
  return refuse(refusal_of("cuMemHostUnregister"), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* start, std::size_t* bytes, CUdeviceptr at) {
  if (start == nullptr && bytes == nullptr) return CUDA_SUCCESS;  // nothing is asked
  std::uint32_t device = 0;
  if (const CUresult r = enter(device); r != CUDA_SUCCESS) return r;
  const Place place = place_of(at);
  if (place.kind == Place::Kind::Unknown) return CUDA_ERROR_NOT_FOUND;
  if (start != nullptr) *start = place.start;
  if (bytes != nullptr) *bytes = place.bytes;
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr at) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Place place = place_of(at);
  return place.kind == Place::Kind::Unknown ? CUDA_ERROR_INVALID_VALUE : known_attribute(data, attribute, at, place);
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data, CUdeviceptr at) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (count == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Place place = place_of(at);
  for (unsigned i = 0; i < count; ++i) {
    if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUresult result;
    if (place.kind == Place::Kind::Unknown)
      result = unknown_attribute(data[i], attributes[i], at);
    else if (attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER && place.kind == Place::Kind::Device)
      result = give(data[i], std::uint64_t{0});
    else
      result = known_attribute(data[i], attributes[i], at, place);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// Either address may be device memory, pinned memory or the program's own: told apart by what we know of them.
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  const bool to_device = place_of(to).kind == Place::Kind::Device,
             from_device = place_of(from).kind == Place::Kind::Device;
  if (to_device && from_device) return Stub<api::id_of::cuMemcpyDtoD_v2>::call(to, from, bytes);
  if (to_device) return custom::cuMemcpyHtoD_v2(to, reinterpret_cast<const void*>(from), bytes);
  if (from_device) return custom::cuMemcpyDtoH_v2(reinterpret_cast<void*>(to), from, bytes);
  if (const CUresult r = Stub<api::id_of::cuStreamSynchronize>::call(nullptr); r != CUDA_SUCCESS) return r;
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  const bool to_device = place_of(to).kind == Place::Kind::Device,
             from_device = place_of(from).kind == Place::Kind::Device;
  if (to_device && from_device) return Stub<api::id_of::cuMemcpyDtoDAsync_v2>::call(to, from, bytes, stream);
  if (to_device) return custom::cuMemcpyHtoDAsync_v2(to, reinterpret_cast<const void*>(from), bytes, stream);
  if (from_device) return custom::cuMemcpyDtoHAsync_v2(reinterpret_cast<void*>(to), from, bytes, stream);
  if (const CUresult r = Stub<api::id_of::cuStreamSynchronize>::call(stream); r != CUDA_SUCCESS) return r;
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return CUDA_SUCCESS;
}

}  // namespace guest::local
