#include "guest/objects/memory/managed_ranges.h"

#include <iterator>

#include "ring/base/mutex.h"

namespace guest {
namespace {

constexpr std::uint64_t page = 4096;

std::uint64_t first_page(std::uint64_t start) { return start / page * page; }
std::uint64_t behind_last_page(std::uint64_t start, std::uint64_t bytes) {
  return first_page(start + bytes - 1) + page;
}

}  // namespace

ManagedRanges::Steps::iterator ManagedRanges::step_at(std::uint64_t page) {
  const auto before = std::prev(steps_.upper_bound(page));
  return steps_.emplace(page, before->second).first;
}

void ManagedRanges::change(std::uint64_t start, std::uint64_t bytes, const std::function<void(Advice&)>& change) {
  const ring::MutexLock lock(mutex_);
  const auto first = step_at(first_page(start)), end = step_at(behind_last_page(start, bytes));
  for (auto step = first; step != end; ++step) change(step->second);
}

void ManagedRanges::forget(std::uint64_t start, std::uint64_t bytes) {
  const ring::MutexLock lock(mutex_);
  const auto first = step_at(first_page(start)), end = step_at(behind_last_page(start, bytes));
  first->second = {};
  steps_.erase(std::next(first), end);
}

std::vector<Advice> ManagedRanges::of(std::uint64_t start, std::uint64_t bytes) const {
  const std::uint64_t end = behind_last_page(start, bytes);
  const ring::MutexLock lock(mutex_);
  std::vector<Advice> found;
  for (auto step = std::prev(steps_.upper_bound(start)); step != steps_.end() && step->first < end; ++step)
    found.push_back(step->second);
  return found;
}

}  // namespace guest
