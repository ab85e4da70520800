#include "guest/objects/arena.h"

#include <bit>

#include "ring/layout.h"

namespace guest {
namespace {

constexpr std::uint64_t pin_step = 32 << 20;  // registering costs a call to the host: not for every block

constexpr std::uint64_t rounded(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }

}  // namespace

Arena::Arena(std::byte* base, std::uint64_t bytes, std::uint64_t pinned, Pin pin)
    : base_(base),
      bytes_(bytes / ring::huge_page * ring::huge_page),
      pin_(std::move(pin)),
      segments_{{staging_bytes, pinned}} {}

// Registers what comes next in the arena: enough for a block of `bytes`, and for more where there is room.
bool Arena::add_segment(std::uint64_t bytes) {
  const std::uint64_t start = segments_.back().end;
  const std::uint64_t least = rounded(bytes, ring::huge_page);
  for (const std::uint64_t size : {std::min(bytes_ - start, std::max(least, pin_step)), least}) {
    if (size < least || size > bytes_ - start || !pin_(start, size)) continue;
    segments_.push_back({start, start + size});
    return true;
  }
  return false;
}

std::byte* Arena::allocate_in(const Segment& segment, std::uint64_t bytes, unsigned flags) {
  const std::uint64_t size = rounded(bytes, ring::page);
  std::uint64_t at = segment.start;
  for (auto b = blocks_.lower_bound(segment.start); b != blocks_.end() && b->first < segment.end; ++b) {  // first fit
    if (b->first - at >= size) break;
    at = b->first + rounded(b->second.bytes, ring::page);
  }
  if (at > segment.end || size > segment.end - at) return nullptr;
  blocks_[at] = {at, bytes, flags};
  return base_ + at;
}

std::byte* Arena::allocate(std::uint64_t bytes, unsigned flags) {
  if (bytes == 0 || bytes > bytes_) return nullptr;
  std::lock_guard lock(mutex_);
  for (const Segment& segment : segments_)
    if (std::byte* at = allocate_in(segment, bytes, flags)) return at;
  return add_segment(bytes) ? allocate_in(segments_.back(), bytes, flags) : nullptr;
}

bool Arena::free(const void* start) {
  std::lock_guard lock(mutex_);
  const auto* at = static_cast<const std::byte*>(start);
  return at >= base_ && at < base_ + bytes_ && blocks_.erase(offset(at)) != 0;
}

std::optional<PinnedBlock> Arena::find(const void* inside) const {
  const auto* at = static_cast<const std::byte*>(inside);
  if (at < base_ || at >= base_ + bytes_) return std::nullopt;
  const std::uint64_t where = offset(at);
  std::lock_guard lock(mutex_);
  auto block = blocks_.upper_bound(where);
  if (block == blocks_.begin()) return std::nullopt;
  --block;
  if (where - block->first >= block->second.bytes) return std::nullopt;
  return block->second;
}

std::optional<std::uint64_t> Arena::offset_of(const void* at, std::uint64_t bytes) const {
  const auto block = find(at);
  if (!block) return std::nullopt;
  const std::uint64_t where = offset(static_cast<const std::byte*>(at));
  if (bytes > block->bytes - (where - block->offset)) return std::nullopt;
  return where;
}

bool Arena::holds(std::uint64_t offset, std::uint64_t bytes) const {
  return offset < bytes_ && offset_of(base_ + offset, bytes).has_value();
}

std::optional<Arena::Chunk> Arena::borrow(bool wait) {
  std::unique_lock lock(staging_mutex_);
  const auto any = [&] { return borrowed_ != (1u << chunk_count) - 1; };
  if (wait) returned_.wait(lock, any);
  if (!any()) return std::nullopt;
  const auto index = static_cast<std::uint32_t>(std::countr_one(borrowed_));
  borrowed_ |= 1u << index;
  return Chunk{index, base_ + index * chunk_bytes, last_[index]};
}

void Arena::give_back(const Chunk& chunk) {
  {
    std::lock_guard lock(staging_mutex_);
    last_[chunk.index] = chunk.last;
    borrowed_ &= ~(1u << chunk.index);
  }
  returned_.notify_one();
}

}  // namespace guest
