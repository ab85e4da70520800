// The arena: the part of this process's slot that guest, worker and GPU map alike. Pinned memory (cuMemHostAlloc) and
// the staging chunks of pageable copies live here.
//
// All bookkeeping is in private memory. Thread-safe.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "guest/objects/objects.h"

namespace guest {

struct PinnedBlock {
  std::uint64_t offset = 0, bytes = 0;
  unsigned flags = 0;
};

class Arena {
 public:
  // Registers [offset, offset + bytes) with the GPU; false when the worker could not. A copy must lie in one
  // registration, so no block crosses from one to the next.
  using Pin = std::function<bool(std::uint64_t offset, std::uint64_t bytes)>;

  static constexpr std::size_t chunk_bytes = 1 << 20;
  static constexpr std::uint32_t chunk_count = 8;
  static constexpr std::uint64_t staging_bytes = chunk_bytes * chunk_count;

  // `pinned`: how much of its start is registered already, staging included.
  Arena(std::byte* base, std::uint64_t bytes, std::uint64_t pinned, Pin pin);

  // A block of pinned memory, aligned to a page; null when the arena is full or cannot be registered.
  std::byte* allocate(std::uint64_t bytes, unsigned flags);
  bool free(const void* start);
  std::optional<PinnedBlock> find(const void* inside) const;
  // The offset of [at, at + bytes) when all of it is one live block.
  std::optional<std::uint64_t> offset_of(const void* at, std::uint64_t bytes) const;
  // The same by offset.
  bool holds(std::uint64_t offset, std::uint64_t bytes) const;
  std::byte* at(std::uint64_t offset) const { return base_ + offset; }
  std::uint64_t offset(const std::byte* at) const { return static_cast<std::uint64_t>(at - base_); }

  // A staging chunk that no other thread uses. `last` is the record that used it last: wait until that has been
  // executed before writing to it. Only who holds none may wait for one (`wait`): else threads could wait for each
  // other's.
  struct Chunk {
    std::uint32_t index = 0;
    std::byte* at = nullptr;
    std::uint64_t last = 0;  // Use, packed
  };
  std::optional<Chunk> borrow(bool wait);
  void give_back(const Chunk& chunk);

 private:
  struct Segment {  // one registration
    std::uint64_t start, end;
  };
  std::byte* allocate_in(const Segment& segment, std::uint64_t bytes, unsigned flags);
  bool add_segment(std::uint64_t bytes);

  std::byte* const base_;
  const std::uint64_t bytes_;
  const Pin pin_;
  mutable std::mutex mutex_;
  std::vector<Segment> segments_;
  std::map<std::uint64_t, PinnedBlock> blocks_;
  std::mutex staging_mutex_;
  std::condition_variable returned_;
  std::array<std::uint64_t, chunk_count> last_{};
  std::uint32_t borrowed_ = 0;  // one bit a chunk
};

}  // namespace guest
