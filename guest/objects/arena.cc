#include "guest/objects/arena.h"

#include "guest/session/order.h"
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
      segments_{{staging_bytes, pinned}} {
  for (std::uint32_t i = 0; i < chunk_count; ++i) chunks_[i] = {.index = i, .at = base_ + i * chunk_bytes};
}

// Registers what comes next in the arena: enough for a block of `bytes`, and for more where there is room.
bool Arena::add_segment(std::uint64_t bytes) {
  // The worker refuses ranges that overlap: what is unsure is settled first, as it was asked for.
  if (unsure_.end != 0) {
    const Registered again = pin(unsure_);
    if (again == Registered::Unknown) return false;
    if (again == Registered::Yes && segments_.back().end - segments_.back().start >= bytes) return true;
  }
  const std::uint64_t start = segments_.back().end;
  const std::uint64_t least = rounded(bytes, ring::huge_page);
  for (const std::uint64_t size : {std::min(bytes_ - start, std::max(least, pin_step)), least}) {
    if (size < least || size > bytes_ - start) continue;
    const Registered done = pin({start, start + size});
    if (done != Registered::No) return done == Registered::Yes;
  }
  return false;
}

Arena::Registered Arena::pin(Segment segment) {
  const Registered done = pin_(segment.start, segment.end - segment.start);
  unsure_ = done == Registered::Unknown ? segment : Segment{0, 0};
  if (done == Registered::Yes) segments_.push_back(segment);
  return done;
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
  free_executed();
  for (const Segment& segment : segments_)
    if (std::byte* at = allocate_in(segment, bytes, flags)) return at;
  return add_segment(bytes) ? allocate_in(segments_.back(), bytes, flags) : nullptr;
}

bool Arena::free(const void* start) {
  std::lock_guard lock(mutex_);
  const auto* at = static_cast<const std::byte*>(start);
  return at >= base_ && at < base_ + bytes_ && blocks_.erase(offset(at)) != 0;
}

bool Arena::free_after(const void* start, Use last) {
  std::lock_guard lock(mutex_);
  const std::uint64_t at = offset(static_cast<const std::byte*>(start));
  if (!blocks_.contains(at)) return false;
  leaving_.emplace_back(at, last);
  return true;
}

void Arena::free_executed() {
  std::erase_if(leaving_, [&](const auto& block) { return executed(block.second) && blocks_.erase(block.first) != 0; });
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
  if (wait) returned_.wait(lock, [&] { return borrowed_ != (1u << chunk_count) - 1; });
  const auto index = free_chunk(wait);
  if (!index) return std::nullopt;
  borrowed_ |= 1u << *index;
  return chunks_[*index];
}

// One whose last use is over; where there is none, any that nobody holds, if `wait`.
std::optional<std::uint32_t> Arena::free_chunk(bool wait) const {
  std::optional<std::uint32_t> in_use;
  for (const Chunk& chunk : chunks_) {
    if (borrowed_ & 1u << chunk.index) continue;
    if (chunk.unfinished == 0 && (chunk.last == 0 || executed(Use::of(chunk.last)))) return chunk.index;
    if (wait && !in_use) in_use = chunk.index;
  }
  return in_use;
}

void Arena::give_back(const Chunk& chunk) {
  {
    std::lock_guard lock(staging_mutex_);
    chunks_[chunk.index] = chunk;
    borrowed_ &= ~(1u << chunk.index);
  }
  returned_.notify_one();
}

}  // namespace guest
