// Queries about an address, and cuPointerSetAttribute.
#include <cstring>

#include "guest/calls/calls.h"
#include "guest/calls/refusal.h"
#include "guest/calls/stub.h"
#include "guest/marshal/custom.h"
#include "guest/process/process.h"

namespace guest::calls {
namespace {

// Writes an attribute's value. Boolean values have 32 bits, since the CUDA runtime reads 32 bits.
template <class T>
CUresult give(void* to, T value) {
  std::memcpy(to, &value, sizeof value);  // NOLINT(bugprone-sizeof-expression): T may be a pointer
  return CUDA_SUCCESS;
}

// Returns the range to which a place belongs. A mapped section belongs to its reservation.
VirtualRange range_of(const Place& place) {
  if (place.reservation == 0) return {.start = place.start, .bytes = place.bytes};
  return session()->memory.reserved.find(place.start).value_or(VirtualRange{});
}

std::uint32_t device_of(const Place& place, const Context& owner) {
  return place.reservation != 0 || place.pooled ? place.device : owner.device;
}

CUresult give_pool(void* to, const Place& place, const Context& owner) {
  std::uint64_t pool = place.pool;
  if (place.pooled && pool == 0) {
    CUmemoryPool found = nullptr;
    const auto ask = Stub<api::id_of::cuDeviceGetDefaultMemPool>::call;
    if (const CUresult r = ask(&found, static_cast<CUdevice>(owner.device)); r != CUDA_SUCCESS) return r;
    pool = api::number_of(found);
  }
  return give(to, pool);
}

CUresult known_attribute(void* data, CUpointer_attribute attribute, CUdeviceptr at, const Place& place) {
  const bool pinned = place.kind == Place::Kind::Pinned, managed = place.kind == Place::Kind::Managed;
  const Context& owner = place.context != nullptr ? *place.context : primary(0);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return give(data, place.reservation == 0 ? owner.handle : CUcontext{});
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: return give(data, pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return give(data, CUdeviceptr{session()->memory.addresses.on_device(place, at)});
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return pinned || managed ? give(data, reinterpret_cast<void*>(place.in_program(at))) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return give(data, place.sync_memops ? 1u : 0u);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: return give(data, static_cast<unsigned long long>(place.id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return give(data, managed ? 1u : 0u);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return give(data, static_cast<int>(device_of(place, owner)));
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: return give(data, 0u);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return give(data, CUdeviceptr{range_of(place).start});
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return give(data, std::size_t{range_of(place).bytes});
    case CU_POINTER_ATTRIBUTE_MAPPED: return give(data, 1u);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: return give(data, 0ULL);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: return give(data, 0u);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return give(data, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return give_pool(data, place, owner);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: return give(data, CUdeviceptr{place.start});
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: return give(data, std::size_t{place.bytes});
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: return give(data, static_cast<unsigned long long>(place.id));
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: return give(data, 0u);
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: return pinned ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

// Returns what cuPointerGetAttributes reports about memory that CUDA does not know. Such memory has an address and no
// other attribute.
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

CUresult cuMemGetAddressRange_v2(CUdeviceptr* start, std::size_t* bytes, CUdeviceptr at) {
  if (start == nullptr && bytes == nullptr) return CUDA_SUCCESS;  // the caller requests nothing
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  const Place place = session()->memory.addresses.find(at);
  if (place.kind == Place::Kind::Unknown) return CUDA_ERROR_NOT_FOUND;
  if (start != nullptr) *start = place.start;
  if (bytes != nullptr) *bytes = place.bytes;
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr at) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Place place = session()->memory.addresses.find(at);
  return place.kind == Place::Kind::Unknown ? CUDA_ERROR_INVALID_VALUE : known_attribute(data, attribute, at, place);
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data, CUdeviceptr at) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (count == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Place place = session()->memory.addresses.find(at);
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

// The only attribute that a program can set makes copies synchronous. The driver knows pinned and managed memory only
// as parts of the arena, and copies from and to such memory are synchronous anyway.
CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr at) {
  constexpr int call = api::id_of::cuPointerSetAttribute;
  Context* context = nullptr;
  if (const CUresult r = enter_call<call>(context); r != CUDA_SUCCESS) return r;
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
  unsigned given = 0;
  std::memcpy(&given, value, sizeof given);
  const Place place = session()->memory.addresses.find(at);
  if (place.kind == Place::Kind::Unknown) return CUDA_ERROR_INVALID_VALUE;
  const api::SetPointerRecord record{.address = at, .sync_memops = given != 0};
  if (place.kind == Place::Kind::Device)
    if (const CUresult r = cross({.call = call, .context = *context}, record).result; r != CUDA_SUCCESS) return r;
  session()->memory.addresses.set_sync_memops(at, given != 0);
  return CUDA_SUCCESS;
}

CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr at, std::size_t bytes, CUmemRangeHandleType type,
                                       unsigned long long flags) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  constexpr std::size_t page = 4096;
  const bool known = type == CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD &&
                     (flags & ~static_cast<unsigned long long>(CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE)) == 0;
  const bool pages = bytes != 0 && at % page == 0 && bytes % page == 0;
  if (handle == nullptr || !known || !pages || !session()->memory.addresses.device_view(at, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return refuse(refusal_of("cuMemGetHandleForAddressRange"));
}

}  // namespace guest::calls
