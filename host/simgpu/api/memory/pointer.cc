// Calls that query the attributes of an address.
#include "host/simgpu/api/cuda_api.h"

#include <cstring>
#include <utility>

#include "host/simgpu/api/memory/memory.h"
#include "host/simgpu/api/memory/memory_pool.h"

using namespace simgpu;

namespace {

// The object to which an address belongs: an allocation, a module's variable, or none.
struct Place {
  Address address = 0;
  bool known = false;
  Allocation allocation;
};

Place place_of(Driver& driver, Address address) {
  if (const auto allocation = driver.memory.find(address)) return {address, true, *allocation};
  for (const auto& device : driver.devices) {
    const auto range = device->space.find(address);
    if (!range || range->leaving) continue;
    Context* context = device->primary.get();
    return {address,
            true,
            {.start = range->start,
             .size = range->size,
             .device = device.get(),
             .context = context,
             .flags = 0,
             .id = range->id}};
  }
  return {.address = address, .known = false, .allocation = {}};
}

template <class T>
CUresult put(void* out, T value) {
  std::memcpy(out, &value, sizeof value);
  return CUDA_SUCCESS;
}

int ordinal_of(Driver& driver, const Device* device) {
  for (std::size_t i = 0; i < driver.devices.size(); ++i)
    if (driver.devices[i].get() == device) return static_cast<int>(i);
  return CU_DEVICE_INVALID;
}

bool is_managed(const Allocation& a) {
  return a.kind == MemoryKind::Managed || (a.pool != nullptr && a.pool->managed());
}
bool is_on_host(const Allocation& a) { return a.on_host() || (a.pool != nullptr && a.pool->on_host()); }

// Returns the range of an allocation; for mapped memory, the range of the reservation.
std::pair<Address, std::size_t> range_around(const Allocation& a) {
  return a.kind == MemoryKind::Mapped ? a.around : std::pair(a.start, a.size);
}

// Returns the device memory that the driver allocated at once for this allocation and possibly others.
std::pair<Address, std::size_t> mapping_of(const Allocation& a) {
  return a.pool == nullptr ? std::pair(a.start, a.size) : a.pool->chunk_of(a.start);
}

CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS access_to(Driver& driver, Address address) {
  if (reachable(driver, address, 1, true)) return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
  return reachable(driver, address, 1) ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
}

std::uint64_t handle_types_of(const Allocation& a) {
  return a.pool == nullptr ? 0 : static_cast<std::uint64_t>(a.pool->properties().handleTypes);
}

CUresult answer(Driver& driver, const Place& place, CUpointer_attribute attribute, void* out) {
  const Allocation& a = place.allocation;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put(out, a.context == nullptr ? Address{0} : address_of(a.context->handle));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put(out, static_cast<unsigned>(is_on_host(a) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return put(out, CUdeviceptr{place.address});
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return is_on_host(a) || is_managed(a) ? put(out, place.address) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return put(out, static_cast<unsigned>(a.sync_memops));
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: return put(out, a.id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return put(out, static_cast<unsigned>(is_managed(a)));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put(out, ordinal_of(driver, a.device));
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: return put(out, 0U);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return put(out, CUdeviceptr{range_around(a).first});
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return put(out, range_around(a).second);
    case CU_POINTER_ATTRIBUTE_MAPPED: return put(out, 1U);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: return put(out, handle_types_of(a));
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: return put(out, 0U);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return put(out, unsigned{access_to(driver, place.address)});
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put(out, a.pool == nullptr ? std::uint64_t{0} : address_of(a.pool->handle));
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: return put(out, mapping_of(a).second);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: return put(out, CUdeviceptr{mapping_of(a).first});
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: return put(out, a.id);
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: return put(out, 0U);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

// Writes the value that cuPointerGetAttributes gives for an address without this attribute or an unknown address.
CUresult answer_nothing(const Place& place, CUpointer_attribute attribute, void* out) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: return put(out, std::uint64_t{0});
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: return put(out, place.known ? Address{0} : place.address);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put(out, int{CU_DEVICE_INVALID});
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: return put(out, 0U);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return with_driver([&](Driver& driver) {
    if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Place place = place_of(driver, ptr);
    return place.known ? answer(driver, place, attribute, data) : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuPointerGetAttributes(unsigned numAttributes, CUpointer_attribute* attributes, void** data, CUdeviceptr ptr) {
  return with_driver([&](Driver& driver) {
    if (numAttributes == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Place place = place_of(driver, ptr);
    for (unsigned i = 0; i < numAttributes; ++i) {
      if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      if (place.known && answer(driver, place, attributes[i], data[i]) == CUDA_SUCCESS) continue;
      if (const CUresult error = answer_nothing(place, attributes[i], data[i]); error != CUDA_SUCCESS) return error;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return with_driver([&](Driver& driver) {
    if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
    unsigned on = 0;
    std::memcpy(&on, value, sizeof on);
    return driver.memory.set_sync_memops(ptr, on != 0) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
