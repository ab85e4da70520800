// The arena: the part of this process's slot that guest, worker and GPU all map. It holds pinned memory
// (cuMemHostAlloc) and the staging chunks of pageable copies. The map of addresses (guest/objects/memory/addresses.h)
// decides which blocks a program may name. A block passed to free_after() has left that map, but its space is not yet
// free here.
//
// All bookkeeping is in private memory. Any thread may call it.
//
// After a wait was given up (guest/session/channel.cc), the GPU or the worker may still use memory that its holder
// returns. The arena does not reuse that memory until the record that uses it has been executed. A chunk remembers that
// record, and free_after() frees a block. A registration with an unknown outcome is requested again in the same form.
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

struct Context;  // guest/process/context.h

class Arena {
 public:
  static constexpr std::size_t chunk_bytes = 1 << 20;
  static constexpr std::uint32_t chunk_count = 8;
  static constexpr std::uint64_t staging_bytes = chunk_bytes * chunk_count;

  // `pinned`: the bytes at the start that are already registered, staging included. `may_join`: see
  // guest/objects/copy/segments.h.
  Arena(std::byte* base, std::uint64_t bytes, std::uint64_t pinned, bool may_join, Segments::Ask ask,
        Executed executed = nothing_under_way);

  // A page-aligned block of pinned memory. Null: the arena is full, or no more of it can be registered.
  std::byte* allocate(std::uint64_t bytes);
  bool free(const void* start);
  // Extends a block in place. False: the space after it is not free.
  bool extend(const std::byte* start, std::uint64_t bytes);
  // Frees a block that a record in a ring still names, once that record was executed.
  bool free_after(const void* start, Use last);
  // The bytes left for blocks, and the largest block that allocate() could return now.
  struct Room {
    std::uint64_t bytes, largest;
  };
  Room room() const;
  std::byte* at(std::uint64_t offset) const { return base_ + offset; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t offset(const std::byte* at) const { return static_cast<std::uint64_t>(at - base_); }

  // A staging chunk that no other thread holds. Its last use may not be over: call await_chunk()
  // (guest/calls/copy/chunk.h) before touching its bytes. Only a thread without a chunk may set `wait`, or threads
  // could deadlock. Without `wait`, borrow() returns only chunks whose last use is over.
  struct Chunk {
    std::uint32_t index = 0;
    std::byte* at = nullptr;
    std::uint64_t last = 0;         // the record that used it last, as a packed Use
    Context* unfinished = nullptr;  // context of a copy that may outlast that record
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
  // Blocks to free once their last use was executed.
  std::vector<std::pair<std::uint64_t, Use>> leaving_ GUARDED_BY(mutex_);
  ring::Mutex staging_mutex_;
  std::condition_variable returned_;
  std::array<Chunk, chunk_count> chunks_ GUARDED_BY(staging_mutex_){};
  std::uint32_t borrowed_ GUARDED_BY(staging_mutex_) = 0;  // one bit a chunk
};

}  // namespace guest
