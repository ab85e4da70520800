// The arena: the part of this process's slot that guest, worker and GPU all map. The arena contains pinned memory
// (cuMemHostAlloc) and the staging chunks of pageable copies. The map of addresses (guest/objects/memory/addresses.h)
// decides which blocks a program may use. A block passed to free_after() has left that map, but its space is not yet
// free in the arena.
//
// All bookkeeping is in private memory. Any thread may call this class.
//
// After the guest gave up a wait (guest/session/channel.cc), the GPU or the worker may still use memory that its holder
// returns. The arena reuses this memory only after the worker has executed the record that uses it. A chunk stores the
// position of this record; a block is freed by free_after(). If the outcome of a registration is unknown, the same
// registration is requested again.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "guest/objects/copy/segments.h"
#include "guest/objects/memory/last_use.h"
#include "ring/base/mutex.h"

namespace guest {

struct Context;  // defined in guest/process/context.h

class Arena {
 public:
  static constexpr std::size_t chunk_bytes = 1 << 20;
  static constexpr std::uint32_t chunk_count = 8;
  static constexpr std::uint64_t staging_bytes = chunk_bytes * chunk_count;

  // `pinned`: the bytes at the arena's start that are already registered, staging chunks included. `may_join`: see
  // guest/objects/copy/segments.h.
  Arena(std::byte* base, std::uint64_t bytes, std::uint64_t pinned, bool may_join, Segments::Ask ask,
        Executed executed = nothing_under_way);

  // Returns a page-aligned block of pinned memory. Returns null if the arena is full, or if no more of the arena can be
  // registered.
  std::byte* allocate(std::uint64_t bytes);
  bool free(const void* start);
  // Extends a block in place. Returns false if the space after the block is not free.
  bool extend(const std::byte* start, std::uint64_t bytes);
  // Frees a block that a record in a ring still uses, once the worker has executed the record.
  bool free_after(const void* start, Use last);
  // The bytes that are free for blocks, and the largest block that allocate() could return now.
  struct Room {
    std::uint64_t bytes, largest;
  };
  Room room() const;
  std::byte* at(std::uint64_t offset) const { return base_ + offset; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t offset(const std::byte* at) const { return static_cast<std::uint64_t>(at - base_); }

  // A staging chunk that no other thread holds. The chunk's last use may not be over: call await_chunk()
  // (guest/calls/copy/chunk.h) before touching the bytes. Only a thread without a chunk may set `wait`, since threads
  // that hold chunks could deadlock. Without `wait`, borrow() returns only chunks whose last use is over.
  struct Chunk {
    std::uint32_t index = 0;
    std::byte* at = nullptr;
    std::uint64_t last = 0;  // the record that used the chunk last, as a packed Use
    // The context of a copy that may not be complete when the worker has executed that record.
    Context* unfinished = nullptr;
  };
  std::optional<Chunk> borrow(bool wait);
  void give_back(const Chunk& chunk);

 private:
  template <class Visit>
  void each_gap(const Segments::Segment& segment, Visit visit) const REQUIRES(mutex_);
  std::byte* allocate_in(const Segments::Segment& segment, std::uint64_t bytes) REQUIRES(mutex_);
  bool is_empty(std::uint64_t start, std::uint64_t end) const REQUIRES(mutex_);
  void free_executed() REQUIRES(mutex_);
  std::optional<std::uint32_t> free_chunk(bool wait) const REQUIRES(staging_mutex_);

  std::byte* const base_;
  const std::uint64_t bytes_;
  const Executed executed_;
  mutable ring::Mutex mutex_;
  Segments segments_ GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::uint64_t> blocks_ GUARDED_BY(mutex_);  // offset -> bytes
  // Blocks to free once the worker has executed their last use.
  std::vector<std::pair<std::uint64_t, Use>> leaving_ GUARDED_BY(mutex_);
  ring::Mutex staging_mutex_;
  std::condition_variable returned_;
  std::array<Chunk, chunk_count> chunks_ GUARDED_BY(staging_mutex_){};
  std::uint32_t borrowed_ GUARDED_BY(staging_mutex_) = 0;  // one bit for each chunk
};

}  // namespace guest
