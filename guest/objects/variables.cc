#include "guest/objects/variables.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "guest/objects/memory/page_swap.h"
#include "ring/api/records.h"
#include "ring/base/mutex.h"
#include "ring/layout/layout.h"

namespace guest {
namespace {

using Outcome = Variables::Outcome;

std::uint64_t page_of(std::uint64_t at) { return at / ring::page * ring::page; }
std::uint64_t behind_last_page(std::uint64_t start, std::uint64_t bytes) {
  return page_of(start + bytes - 1) + ring::page;
}

void* pointer(std::uint64_t at) { return reinterpret_cast<void*>(at); }

}  // namespace

// Returns the first cover that ends after `start`, or the end.
Variables::Covers::iterator Variables::first_cover(std::uint64_t start) {
  const auto next = covers_.upper_bound(start);
  if (next == covers_.begin()) return next;
  const auto before = std::prev(next);
  return before->first + before->second.bytes > start ? before : next;
}

template <class F>
void Variables::each_cover(std::uint64_t start, std::uint64_t bytes, F f) {
  for (auto at = first_cover(start); at != covers_.end() && at->first < start + bytes; ++at) f(*at);
}

Outcome Variables::put_pages(std::uint64_t start, std::uint64_t end) {
  const std::uint64_t bytes = end - start;
  if (!reserve_(start, bytes)) return Outcome::Taken;
  std::byte* const block = arena_.allocate(bytes);
  if (block == nullptr) return Outcome::NoRoom;
  std::memset(block, 0, bytes);
  std::byte* const again = map_again_(arena_.offset(block), bytes);
  if (again == nullptr || mremap(again, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, pointer(start)) == MAP_FAILED) {
    if (again != nullptr) munmap(again, bytes);
    arena_.free(block);
    return Outcome::Failed;
  }
  covers_.emplace(start, Cover{bytes, block, 0});
  return Outcome::Done;
}

// Maps pages of the arena in those parts of [start, end) that no cover has yet.
Outcome Variables::cover(std::uint64_t start, std::uint64_t end) {
  while (start < end) {
    const auto next = first_cover(start);
    const std::uint64_t stop = next == covers_.end() ? end : std::min(end, next->first);
    if (stop > start)
      if (const Outcome outcome = put_pages(start, stop); outcome != Outcome::Done) return outcome;
    start = next == covers_.end() ? end : std::max(stop, next->first + next->second.bytes);
  }
  return Outcome::Done;
}

Outcome Variables::add(std::uint64_t start, std::uint64_t bytes, std::uint64_t owner, std::vector<Piece>& pieces) {
  if (in_place_) return Outcome::Done;
  if (bytes == 0 || bytes > api::max_shadowed_bytes || start > UINT64_MAX - 2 * api::max_shadowed_bytes)
    return Outcome::TooMany;
  const ring::MutexLock lock(mutex_);
  const auto known = variables_.find(start);
  if (known != variables_.end() && known->second.bytes == bytes) {
    known->second.owner = owner;
  } else {
    drop_overlapping(start, bytes);
    if (bytes > api::max_shadowed_bytes - bytes_) return Outcome::TooMany;
    const Outcome outcome = cover(page_of(start), behind_last_page(start, bytes));
    if (outcome != Outcome::Done) {
      drop_empty({});
      return outcome;
    }
    variables_.emplace(start, Variable{bytes, owner});
    bytes_ += bytes;
    each_cover(start, bytes, [](auto& c) { ++c.second.variables; });
  }
  each_cover(start, bytes, [&](const auto& c) {
    const std::uint64_t from = std::max(start, c.first), to = std::min(start + bytes, c.first + c.second.bytes);
    pieces.push_back({from, to - from, arena_.offset(c.second.block) + (from - c.first)});
  });
  return Outcome::Done;
}

// Drops variables that have ended with a context of their library. The guest does not notice such an end.
void Variables::drop_overlapping(std::uint64_t start, std::uint64_t bytes) {
  for (auto at = variables_.begin(); at != variables_.end();)
    at = at->first < start + bytes && start < at->first + at->second.bytes ? drop(at) : std::next(at);
}

Variables::All::iterator Variables::drop(All::iterator at) {
  each_cover(at->first, at->second.bytes, [](auto& c) { --c.second.variables; });
  bytes_ -= at->second.bytes;
  return variables_.erase(at);
}

// Drops covers without variables. Their addresses stay reserved, since the driver reuses them
// (guest/objects/memory/reservations.h).
void Variables::drop_empty(Use last) {
  for (auto at = covers_.begin(); at != covers_.end();) {
    const Cover& c = at->second;
    if (c.variables != 0) {
      ++at;
      continue;
    }
    mmap(pointer(at->first), c.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (last.position == 0)
      arena_.free(c.block);
    else
      arena_.free_after(c.block, last);
    at = covers_.erase(at);
  }
}

void Variables::drop_of(std::uint64_t owner, Use last) {
  const ring::MutexLock lock(mutex_);
  if (variables_.empty()) return;
  for (auto at = variables_.begin(); at != variables_.end();) at = at->second.owner == owner ? drop(at) : std::next(at);
  drop_empty(last);
}

void Variables::leave() {
  const ring::MutexLock lock(mutex_);
  for (const auto& [start, c] : covers_)
    copy_out({static_cast<std::byte*>(pointer(start)), c.bytes, PROT_READ | PROT_WRITE}, c.block);
  covers_.clear();
  variables_.clear();
}

}  // namespace guest
