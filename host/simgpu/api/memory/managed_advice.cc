#include "host/simgpu/api/memory/managed_advice.h"

#include <algorithm>
#include <iterator>

#include "ring/base/mutex.h"

namespace simgpu {
namespace {

constexpr Address page = 4096;

Address first_page(Address start) { return start / page * page; }
Address behind_last_page(Address start, std::size_t size) { return (start + size + page - 1) / page * page; }

}  // namespace

void ManagedAdvice::split(Address at) {
  const auto after = parts_.upper_bound(at);
  if (after == parts_.begin()) return;
  auto& [start, part] = *std::prev(after);
  if (start == at || part.end <= at) return;
  parts_[at] = part;
  part.end = at;
}

void ManagedAdvice::change(Address start, std::size_t size, const std::function<void(Advice&)>& change) {
  const Address end = behind_last_page(start, size);
  const ring::MutexLock lock(mutex_);
  split(first_page(start));
  split(end);
  for (Address at = first_page(start); at < end;) {
    const auto part = parts_.lower_bound(at);
    if (part == parts_.end() || part->first > at) {
      parts_[at].end = part == parts_.end() ? end : std::min(part->first, end);
      continue;
    }
    change(part->second.advice);
    at = part->second.end;
  }
}

void ManagedAdvice::forget(Address start, std::size_t size) {
  const Address end = behind_last_page(start, size);
  const ring::MutexLock lock(mutex_);
  split(first_page(start));
  split(end);
  parts_.erase(parts_.lower_bound(first_page(start)), parts_.lower_bound(end));
}

std::vector<Advice> ManagedAdvice::of(Address start, std::size_t size) const {
  const Address end = behind_last_page(start, size);
  const ring::MutexLock lock(mutex_);
  std::vector<Advice> found;
  Address at = first_page(start);
  auto part = parts_.upper_bound(at);
  if (part != parts_.begin() && std::prev(part)->second.end > at) --part;
  for (; at < end; ++part) {
    const bool here = part != parts_.end() && part->first < end;
    if (!here || part->first > at) found.push_back({});
    if (!here) break;
    found.push_back(part->second.advice);
    at = part->second.end;
  }
  return found;
}

}  // namespace simgpu
