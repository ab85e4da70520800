#include "guest/objects/memory/arena.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "guest/base/uncancelled.h"
#include "ring/base/mutex.h"
#include "ring/layout/layout.h"

namespace guest {
namespace {

constexpr std::uint64_t rounded(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }

}  // namespace

Arena::Arena(std::byte* base, std::uint64_t bytes, std::uint64_t pinned, bool may_join, Segments::Ask ask,
             Executed executed)
    : base_(base),
      bytes_(bytes / ring::huge_page * ring::huge_page),
      executed_(executed),
      segments_(staging_bytes, pinned, bytes_, may_join, std::move(ask)) {
  for (std::uint32_t i = 0; i < chunk_count; ++i) chunks_[i] = {.index = i, .at = base_ + i * chunk_bytes};
}

// Calls visit(start, end) for each gap between the segment's blocks, in ascending order, until `visit` returns true.
template <class Visit>
void Arena::each_gap(const Segments::Segment& segment, Visit visit) const {
  std::uint64_t at = segment.start;
  for (auto b = blocks_.lower_bound(segment.start); b != blocks_.end() && b->first < segment.end; ++b) {
    if (b->first > at && visit(at, b->first)) return;
    at = b->first + rounded(b->second, ring::page);
  }
  if (segment.end > at) visit(at, segment.end);
}

std::byte* Arena::allocate_in(const Segments::Segment& segment, std::uint64_t bytes) {
  std::byte* place = nullptr;
  each_gap(segment, [&](std::uint64_t start, std::uint64_t end) {  // takes the first gap that fits
    mutex_.assume_held();
    if (end - start < rounded(bytes, ring::page)) return false;
    blocks_[start] = bytes;
    place = base_ + start;
    return true;
  });
  return place;
}

bool Arena::is_empty(std::uint64_t start, std::uint64_t end) const {
  const auto block = blocks_.lower_bound(start);
  return block == blocks_.end() || block->first >= end;
}

std::byte* Arena::allocate(std::uint64_t bytes) {
  if (bytes == 0 || bytes > bytes_) return nullptr;
  ring::MutexLock lock(mutex_);
  free_executed();
  do {
    for (const Segments::Segment& segment : segments_.all())
      if (std::byte* at = segment.registered() ? allocate_in(segment, bytes) : nullptr) return at;
  } while (segments_.add_room(
      bytes, [this](std::uint64_t start, std::uint64_t end) REQUIRES(mutex_) { return is_empty(start, end); }));
  return nullptr;
}

Arena::Room Arena::room() const {
  ring::MutexLock lock(mutex_);
  Room room{0, segments_.largest_room([this](std::uint64_t start, std::uint64_t end)
                                          REQUIRES(mutex_) { return is_empty(start, end); })};
  for (const Segments::Segment& segment : segments_.all())
    each_gap(segment, [&](std::uint64_t start, std::uint64_t end) {
      room.bytes += end - start;
      if (segment.registered()) room.largest = std::max(room.largest, end - start);
      return false;
    });
  return room;
}

bool Arena::free(const void* start) {
  ring::MutexLock lock(mutex_);
  const auto* at = static_cast<const std::byte*>(start);
  return at >= base_ && at < base_ + bytes_ && blocks_.erase(offset(at)) != 0;
}

bool Arena::extend(const std::byte* start, std::uint64_t bytes) {
  ring::MutexLock lock(mutex_);
  free_executed();
  const auto block = blocks_.find(offset(start));
  if (block == blocks_.end() || bytes < block->second || bytes > bytes_ - block->first) return false;
  const std::uint64_t end = block->first + rounded(bytes, ring::page);
  const auto next = std::next(block);
  if (next != blocks_.end() && next->first < end) return false;
  for (const Segments::Segment& segment : segments_.all())
    if (segment.registered() && block->first >= segment.start && block->first < segment.end && end <= segment.end) {
      block->second = bytes;
      return true;
    }
  return false;
}

bool Arena::free_after(const void* start, Use last) {
  ring::MutexLock lock(mutex_);
  const std::uint64_t at = offset(static_cast<const std::byte*>(start));
  if (!blocks_.contains(at)) return false;
  leaving_.emplace_back(at, last);
  return true;
}

void Arena::free_executed() {
  std::erase_if(leaving_, [&](const auto& block)
                              REQUIRES(mutex_) { return executed_(block.second) && blocks_.erase(block.first) != 0; });
}

std::optional<Arena::Chunk> Arena::borrow(bool wait) {
  const Uncancelled here;
  ring::UniqueLock lock(staging_mutex_);
  if (wait)
    returned_.wait(lock.native(), [this]() REQUIRES(staging_mutex_) { return borrowed_ != (1u << chunk_count) - 1; });
  const auto index = free_chunk(wait);
  if (!index) return std::nullopt;
  borrowed_ |= 1u << *index;
  return chunks_[*index];
}

// Returns a chunk that no thread holds and whose last use is over. With `wait`, and if there is no such chunk, returns
// any chunk that no thread holds.
std::optional<std::uint32_t> Arena::free_chunk(bool wait) const {
  std::optional<std::uint32_t> in_use;
  for (const Chunk& chunk : chunks_) {
    if (borrowed_ & 1u << chunk.index) continue;
    if (chunk.unfinished == nullptr && (chunk.last == 0 || executed_(Use::of(chunk.last)))) return chunk.index;
    if (wait && !in_use) in_use = chunk.index;
  }
  return in_use;
}

void Arena::give_back(const Chunk& chunk) {
  {
    ring::MutexLock lock(staging_mutex_);
    chunks_[chunk.index] = chunk;
    borrowed_ &= ~(1u << chunk.index);
  }
  returned_.notify_one();
}

}  // namespace guest
