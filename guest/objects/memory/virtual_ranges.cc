#include "guest/objects/memory/virtual_ranges.h"

#include <iterator>

#include "ring/base/mutex.h"

namespace guest {

void VirtualRanges::add(std::uint64_t start, std::uint64_t bytes) {
  ring::MutexLock lock(mutex_);
  ranges_[start] = {start, bytes, next_number_++};
}

std::map<std::uint64_t, VirtualRange>::const_iterator VirtualRanges::holder_of(std::uint64_t inside) const {
  auto at = ranges_.upper_bound(inside);
  if (at == ranges_.begin()) return ranges_.end();
  --at;
  return inside - at->first < at->second.bytes ? at : ranges_.end();
}

bool VirtualRanges::holds(std::uint64_t start, std::uint64_t bytes) const {
  ring::MutexLock lock(mutex_);
  const auto at = holder_of(start);
  return at != ranges_.end() && bytes <= at->second.bytes - (start - at->first);
}

std::optional<VirtualRange> VirtualRanges::find(std::uint64_t inside) const {
  ring::MutexLock lock(mutex_);
  const auto at = holder_of(inside);
  return at == ranges_.end() ? std::nullopt : std::optional(at->second);
}

std::vector<std::uint64_t> VirtualRanges::commit(api::Range range, std::uint64_t start, std::uint64_t bytes,
                                                 std::uint64_t object, std::uint32_t device) {
  const std::optional<VirtualRange> in = find(start);
  if (!in) return {};  // another thread has freed the reservation
  switch (range) {
    case api::Range::Stays:
    case api::Range::Made: break;
    case api::Range::Mapped:
      mapped_.add({.kind = Place::Kind::Device,
                   .reservation = in->number,
                   .start = start,
                   .bytes = bytes,
                   .id = next_id_.fetch_add(1, std::memory_order_relaxed),
                   .object = object,
                   .device = device});
      break;
    case api::Range::Unmapped: return mapped_.unmap(start, bytes);
    case api::Range::Freed: {
      ring::MutexLock lock(mutex_);
      ranges_.erase(start);
    }
  }
  return {};
}

}  // namespace guest
