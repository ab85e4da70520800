#include "host/simgpu/memory/reservations.h"

#include <sys/mman.h>

#include <iterator>

#include "ring/base/mutex.h"

namespace simgpu {
namespace {

constexpr Address last = 0x7ee0'0000'0000;  // end of the search, where the devices' memory begins
constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

Address round_up(Address value, std::size_t to) { return (value + to - 1) & ~(Address{to} - 1); }

void* pointer(Address address) { return reinterpret_cast<void*>(address); }

bool reserve_at(Address start, std::size_t size) {
  void* at = mmap(pointer(start), size, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
  if (at == MAP_FAILED) return false;
  if (at == pointer(start)) return true;
  munmap(at, size);  // a kernel older than Linux 4.17 treats the address as a hint only
  return false;
}

// Reserves a range at any address. The parts that are cut off for the alignment are unmapped at once, since they were
// never used.
Address reserve_anywhere(std::size_t size, std::size_t align) {
  std::size_t with_room = 0;
  if (__builtin_add_overflow(size, align, &with_room)) return 0;
  void* at = mmap(nullptr, with_room, PROT_NONE, flags, -1, 0);
  if (at == MAP_FAILED) return 0;
  const auto first = reinterpret_cast<Address>(at);
  const Address start = round_up(first, align);
  if (start > first) munmap(at, start - first);
  const Address end = start + size;
  if (first + with_room > end) munmap(pointer(end), first + with_room - end);
  return start;
}

}  // namespace

Address Reservations::reserve(std::size_t size, std::size_t align, Address hint) {
  const ring::MutexLock lock(mutex_);
  if (hint != 0 && hint % align == 0 && (take_spare_at(hint, size) || reserve_at(hint, size))) return hint;
  if (const Address start = take_spare(size, align); start != 0) return start;
  const Address start = round_up(next_, align);
  if (start < last && size <= last - start && reserve_at(start, size)) {
    next_ = start + size;
    return start;
  }
  return reserve_anywhere(size, align);
}

bool Reservations::take_spare_at(Address start, std::size_t size) {
  const auto after = spare_.upper_bound(start);
  if (after == spare_.begin()) return false;
  const auto hole = std::prev(after);
  const auto [first, bytes] = *hole;
  const Address end = first + bytes;
  if (start >= end || size > end - start) return false;
  spare_.erase(hole);
  if (start > first) spare_[first] = start - first;
  if (end > start + size) spare_[start + size] = end - start - size;
  madvise(pointer(start), size, MADV_DONTNEED);
  return true;
}

Address Reservations::take_spare(std::size_t size, std::size_t align) {
  for (const auto& [first, bytes] : spare_) {
    const Address start = round_up(first, align);
    if (take_spare_at(start, size)) return start;
  }
  return 0;
}

void Reservations::release(Address start, std::size_t size) {
  const ring::MutexLock lock(mutex_);
  auto after = spare_.lower_bound(start);
  if (after != spare_.end() && after->first == start + size) {
    size += after->second;
    after = spare_.erase(after);
  }
  if (after != spare_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == start) {
      before->second += size;
      return;
    }
  }
  spare_[start] = size;
}

void Reservations::unmap(Address start, std::size_t size) {
  mmap(pointer(start), size, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0);
}

}  // namespace simgpu
