#include "guest/objects/memory/reservations.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "ring/base/mutex.h"
#include "ring/layout/layout.h"

namespace guest {

bool Reservations::reserve(std::uint64_t start, std::uint64_t bytes) {
  const std::uint64_t from = start / ring::page * ring::page;
  const std::uint64_t to = (start + std::max<std::uint64_t>(bytes, 1) + ring::page - 1) / ring::page * ring::page;
  if (bytes > ~start || to <= from) return false;  // the range goes beyond the last address
  ring::MutexLock lock(mutex_);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
  std::uint64_t at = from;
  while (at < to) {
    // `next` is the first reserved range that ends after `at`. The gap before `next` is reserved here.
    auto next = ranges_.upper_bound(at);
    if (next != ranges_.begin() && std::prev(next)->second > at) {
      at = std::prev(next)->second;
      continue;
    }
    const std::uint64_t end = next == ranges_.end() ? to : std::min(to, next->first);
    void* wanted = reinterpret_cast<void*>(at);
    void* got =
        mmap(wanted, end - at, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != wanted) {
      if (got != MAP_FAILED) munmap(got, end - at);
      for (const auto& [a, b] : taken) munmap(reinterpret_cast<void*>(a), b - a);
      return false;
    }
    taken.emplace_back(at, end);
    at = end;
  }
  for (const auto& [a, b] : taken) ranges_[a] = b;
  return true;
}

}  // namespace guest
