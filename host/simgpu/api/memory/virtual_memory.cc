// The rules are those of NVIDIA's driver (docs/design/022-memory-asked-first.md): a mapping covers a whole object, and
// only whole mappings can be unmapped.
#include "host/simgpu/api/memory/virtual_memory.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "host/simgpu/api/driver.h"
#include "host/simgpu/api/log.h"
#include "host/simgpu/api/memory/memory.h"
#include "ring/base/mutex.h"

namespace simgpu {
namespace {

constexpr Address no_address = Address{1} << 47;
// NVIDIA's driver ignores the address hint of a smaller reservation.
constexpr std::size_t least_hinted = std::size_t{64} << 20;

bool beyond(Address start, std::size_t size) {
  Address end = 0;
  return __builtin_add_overflow(start, size, &end) || end > no_address;
}

// Returns the entry with the greatest key that is not above `address`; null if there is none.
template <class Map>
typename Map::value_type* at_or_below(Map& map, Address address) {
  const auto after = map.upper_bound(address);
  return after == map.begin() ? nullptr : &*std::prev(after);
}

}  // namespace

CUresult VirtualMemory::reserve(Address* out, std::size_t size, std::size_t alignment, Address hint) {
  if (beyond(hint, size)) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::size_t align = std::max(alignment, granularity);
  const Address start = addresses_.reserve(size, align, size < least_hinted ? 0 : hint);
  if (start == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  const ring::MutexLock lock(mutex_);
  reservations_[start].size = size;
  *out = start;
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::free(Address start, std::size_t size) {
  const ring::MutexLock lock(mutex_);
  const auto found = reservations_.find(start);
  if (found == reservations_.end() || found->second.size != size || !found->second.mappings.empty())
    return CUDA_ERROR_INVALID_VALUE;
  reservations_.erase(found);
  addresses_.release(start, size);
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::create(CUmemGenericAllocationHandle* out, std::size_t size,
                               const CUmemAllocationProp& properties, Device& device) {
  if (!device.space.charge(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto offset = physical_.take(size);
  if (!offset) {
    if (!physical_.is_allowed() && !limit_reported_.exchange(true))
      report("RLIMIT_FSIZE (ulimit -f) allows no file for virtual memory: cuMemCreate finds none");
    device.space.discharge(size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  auto object = std::make_unique<Object>();
  object->offset = *offset;
  object->size = size;
  object->properties = properties;
  object->device = &device;
  const ring::MutexLock lock(mutex_);
  *out = object->handle = next_handle_;
  next_handle_ += 0x100;
  objects_[object->handle] = std::move(object);
  return CUDA_SUCCESS;
}

VirtualMemory::Object* VirtualMemory::find_object(CUmemGenericAllocationHandle handle) {
  const auto found = objects_.find(handle);
  return found == objects_.end() ? nullptr : found->second.get();
}

void VirtualMemory::drop_if_unused(const Object& object) {
  if (object.handles != 0 || object.mappings != 0) return;
  physical_.give_back(object.offset, object.size);
  object.device->space.discharge(object.size);
  objects_.erase(object.handle);
}

// A released handle stays valid as long as its object is mapped.
CUresult VirtualMemory::release(CUmemGenericAllocationHandle handle) {
  const ring::MutexLock lock(mutex_);
  Object* object = find_object(handle);
  if (object == nullptr || object->handles == 0) return CUDA_ERROR_INVALID_VALUE;
  --object->handles;
  drop_if_unused(*object);
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::retain(CUmemGenericAllocationHandle* out, Address inside) {
  const ring::MutexLock lock(mutex_);
  const auto* mapping = mapping_of(inside);
  if (mapping == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ++mapping->second.object->handles;
  *out = mapping->second.object->handle;
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::properties(CUmemAllocationProp* out, CUmemGenericAllocationHandle handle) {
  const ring::MutexLock lock(mutex_);
  const Object* object = find_object(handle);
  if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = object->properties;
  return CUDA_SUCCESS;
}

std::pair<const Address, VirtualMemory::Reservation>* VirtualMemory::reservation_of(Address start, std::size_t size) {
  auto* found = at_or_below(reservations_, start);
  if (found == nullptr || size == 0) return nullptr;
  const std::size_t offset = start - found->first;
  return offset < found->second.size && size <= found->second.size - offset ? found : nullptr;
}

std::pair<const Address, VirtualMemory::Mapping>* VirtualMemory::mapping_of(Address inside) {
  auto* reservation = reservation_of(inside, 1);
  auto* found = reservation == nullptr ? nullptr : at_or_below(reservation->second.mappings, inside);
  return found != nullptr && inside - found->first < found->second.size ? found : nullptr;
}

CUresult VirtualMemory::map(Address start, std::size_t size, CUmemGenericAllocationHandle handle) {
  const ring::MutexLock lock(mutex_);
  Object* object = find_object(handle);
  auto* reservation = reservation_of(start, size);
  if (object == nullptr || reservation == nullptr || !whole(start)) return CUDA_ERROR_INVALID_VALUE;
  if (size != object->size) return CUDA_ERROR_NOT_SUPPORTED;
  Mappings& mappings = reservation->second.mappings;
  const auto* below = at_or_below(mappings, start + size - 1);
  if (below != nullptr && below->first + below->second.size > start) return CUDA_ERROR_INVALID_VALUE;
  if (!physical_.map(start, object->offset, size)) return CUDA_ERROR_OUT_OF_MEMORY;
  ++object->mappings;
  mappings[start] = {.size = size, .object = object, .access = {}};
  driver_.memory.insert({.start = start,
                         .size = size,
                         .kind = MemoryKind::Mapped,
                         .device = object->device,
                         .id = driver_.next_id() | std::uint64_t{1} << 49,  // ids of other memory never have bit 49
                         .around = {reservation->first, reservation->second.size}});
  return CUDA_SUCCESS;
}

void VirtualMemory::end_mapping(Address start, Mapping& mapping) {
  driver_.memory.take(start, [](const Allocation& a) { return a.kind == MemoryKind::Mapped; });
  for (const auto& device : driver_.devices) device->space.remove(start);
  Reservations::unmap(start, mapping.size);
  --mapping.object->mappings;
  drop_if_unused(*mapping.object);
}

// Unmaps any number of mappings. As in NVIDIA's driver, a range without mappings is no error.
CUresult VirtualMemory::unmap(Address start, std::size_t size) {
  const ring::MutexLock lock(mutex_);
  auto* reservation = reservation_of(start, size);
  if (reservation == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Mappings& mappings = reservation->second.mappings;
  const Address end = start + size;
  const auto* first = at_or_below(mappings, start);
  if (first != nullptr && first->first < start && first->first + first->second.size > start)
    return CUDA_ERROR_INVALID_VALUE;
  const auto* last = at_or_below(mappings, end - 1);
  if (last != nullptr && last->first + last->second.size > end) return CUDA_ERROR_INVALID_VALUE;
  for (auto at = mappings.lower_bound(start); at != mappings.end() && at->first < end; at = mappings.erase(at))
    end_mapping(at->first, at->second);
  return CUDA_SUCCESS;
}

void VirtualMemory::give_access(Address start, Mapping& mapping, Device& device, CUmemAccess_flags flags) {
  CUmemAccess_flags& given = mapping.access[&device];
  if (given == flags) return;
  if (given != CU_MEM_ACCESS_FLAGS_PROT_NONE) device.space.remove(start);
  given = flags;
  if (flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) return;
  device.space.add({.start = start,
                    .size = mapping.size,
                    .kind = RangeKind::Mapped,
                    .read_only = flags == CU_MEM_ACCESS_FLAGS_PROT_READ});
}

CUresult VirtualMemory::set_access(Address start, std::size_t size, Device& device, CUmemAccess_flags flags) {
  const ring::MutexLock lock(mutex_);
  auto* reservation = reservation_of(start, size);
  if (reservation == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::pair<const Address, Mapping>*> wanted;
  for (Address at = start; at != start + size;) {
    const auto found = reservation->second.mappings.find(at);
    if (found == reservation->second.mappings.end() || found->second.size > start + size - at)
      return CUDA_ERROR_INVALID_VALUE;
    wanted.push_back(&*found);
    at += found->second.size;
  }
  for (auto* mapping : wanted) give_access(mapping->first, mapping->second, device, flags);
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::access(unsigned long long* out, const Device* device, Address inside) {
  const ring::MutexLock lock(mutex_);
  auto* mapping = mapping_of(inside);
  if (mapping == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto found = mapping->second.access.find(device);
  *out = found == mapping->second.access.end() ? CU_MEM_ACCESS_FLAGS_PROT_NONE : found->second;
  return CUDA_SUCCESS;
}

}  // namespace simgpu
