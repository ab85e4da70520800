#include "host/session/memory/virtual_ranges.h"

#include "ring/base/mutex.h"

namespace host {

void VirtualRanges::add(std::uint64_t start, std::uint64_t bytes) {
  ring::MutexLock lock(mutex_);
  ranges_[start] = {bytes, next_number_++};
  count_.store(ranges_.size(), std::memory_order_relaxed);
}

std::map<std::uint64_t, VirtualRanges::Reservation>::const_iterator VirtualRanges::holder_of(
    std::uint64_t start, std::uint64_t bytes) const {
  auto at = ranges_.upper_bound(start);
  if (at == ranges_.begin()) return ranges_.end();
  --at;
  const std::uint64_t offset = start - at->first;
  return offset < at->second.bytes && bytes <= at->second.bytes - offset ? at : ranges_.end();
}

bool VirtualRanges::holds(std::uint64_t start, std::uint64_t bytes) const {
  ring::MutexLock lock(mutex_);
  return holder_of(start, bytes) != ranges_.end();
}

std::vector<std::uint64_t> VirtualRanges::commit(api::Range range, std::uint64_t start, std::uint64_t bytes,
                                                 std::uint64_t object) {
  ring::MutexLock lock(mutex_);
  const auto at = holder_of(start, bytes);
  if (at == ranges_.end()) return {};
  switch (range) {
    case api::Range::Stays:
    case api::Range::Made: break;
    case api::Range::Mapped:
      mapped_.add(
          {.start = start, .bytes = bytes, .reservation = at->second.number, .object = object, .context = no_context});
      break;
    case api::Range::Unmapped: return mapped_.unmap(start, bytes);
    case api::Range::Freed:
      ranges_.erase(at);
      count_.store(ranges_.size(), std::memory_order_relaxed);
      return mapped_.unmap(start, bytes);  // returns pieces whose end the driver has not reported
  }
  return {};
}

}  // namespace host
