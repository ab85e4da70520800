// Allocations do not overlap. Therefore only the last allocation that starts at or below an address can contain the
// address.
#include "host/simgpu/api/memory/memory_map.h"

#include "ring/base/mutex.h"

namespace simgpu {

void MemoryMap::insert(const Allocation& allocation) {
  const ring::MutexLock lock(mutex_);
  map_[allocation.start] = allocation;
}

const Allocation* MemoryMap::find_locked(Address inside) const {
  auto after = map_.upper_bound(inside);
  if (after == map_.begin()) return nullptr;
  const Allocation& candidate = (--after)->second;
  return inside - candidate.start < candidate.size ? &candidate : nullptr;
}

std::optional<Allocation> MemoryMap::find(Address inside) const {
  const ring::MutexLock lock(mutex_);
  const Allocation* found = find_locked(inside);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

bool MemoryMap::overlaps(Address start, std::size_t size) const {
  const ring::MutexLock lock(mutex_);
  if (find_locked(start) != nullptr) return true;
  const auto next = map_.lower_bound(start);
  return next != map_.end() && next->first - start < size;
}

bool MemoryMap::set_sync_memops(Address inside, bool value) {
  const ring::MutexLock lock(mutex_);
  const Allocation* found = find_locked(inside);
  if (found == nullptr) return false;
  map_[found->start].sync_memops = value;
  return true;
}

std::vector<Allocation> MemoryMap::take_all(const Context* context) {
  const ring::MutexLock lock(mutex_);
  std::vector<Allocation> out;
  for (auto at = map_.begin(); at != map_.end();) {
    if (at->second.context == context && at->second.kind != MemoryKind::Pool) {
      out.push_back(at->second);
      at = map_.erase(at);
    } else {
      ++at;
    }
  }
  return out;
}

}  // namespace simgpu
