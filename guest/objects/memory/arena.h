// The arena: the part of this process's slot that guest, worker and GPU all map. Pinned memory (cuMemHostAlloc) and the
// staging chunks of pageable copies live here. The map of addresses (guest/objects/memory/addresses.h), and not the arena,
// knows which blocks a program may name. A block that free_after() frees has left that map already, while its room here
// is still taken.
//
// All bookkeeping is in private memory. Any thread may call it.
//
// After a wait was given up (guest/session/channel.cc) the GPU or the worker may still use memory that its holder
// returns. The arena does not hand such memory out before the record that uses it has been executed: a chunk remembers
// that record, and a block is freed by free_after(). A registration whose outcome is unknown is asked for again in the
// same form.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "guest/objects/copy/segments.h"
#include "guest/objects/memory/last_use.h"

namespace guest {

struct Context;  // guest/process/context.h

class Arena {
 public:
  static constexpr std::size_t chunk_bytes = 1 << 20;
  static constexpr std::uint32_t chunk_count = 8;
  static constexpr std::uint64_t staging_bytes = chunk_bytes * chunk_count;

  // `pinned`: the bytes at its start that are registered already, staging included. `may_join`: see
  // guest/objects/copy/segments.h.
  Arena(std::byte* base, std::uint64_t bytes, std::uint64_t pinned, bool may_join, Segments::Ask ask,
        Executed executed = nothing_under_way);

  // A block of pinned memory, aligned to a page. Null: the arena is full, or no more of it can be registered.
  std::byte* allocate(std::uint64_t bytes);
  bool free(const void* start);
  // Makes a block longer where it lies. False: what lies behind it is not free.
  bool extend(const std::byte* start, std::uint64_t bytes);
  // The same for a block that a record still in a ring names: its room is free once that record was executed.
  bool free_after(const void* start, Use last);
  // The bytes left for blocks, and the largest block that allocate() could give now.
  struct Room {
    std::uint64_t bytes, largest;
  };
  Room room() const;
  std::byte* at(std::uint64_t offset) const { return base_ + offset; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t offset(const std::byte* at) const { return static_cast<std::uint64_t>(at - base_); }

  // A staging chunk that no other thread holds. Its last use may not be over, so call await_chunk()
  // (guest/calls/copy/chunk.h) before touching its bytes. Only a thread that holds no chunk may `wait` for one, or threads
  // could wait for each other. borrow() prefers a chunk whose last use is over; without `wait` it lends no other.
  struct Chunk {
    std::uint32_t index = 0;
    std::byte* at = nullptr;
    std::uint64_t last = 0;         // Use, packed: the record that used it last
    Context* unfinished = nullptr;  // the context of a copy that may outlast that record
  };
  std::optional<Chunk> borrow(bool wait);
  void give_back(const Chunk& chunk);

 private:
  template <class Visit>
  void each_gap(const Segments::Segment& segment, Visit visit) const;
  std::byte* allocate_in(const Segments::Segment& segment, std::uint64_t bytes);
  bool is_empty(std::uint64_t start, std::uint64_t end) const;
  void free_executed();
  std::optional<std::uint32_t> free_chunk(bool wait) const;

  std::byte* const base_;
  const std::uint64_t bytes_;
  const Executed executed_;
  mutable std::mutex mutex_;
  Segments segments_;
  std::map<std::uint64_t, std::uint64_t> blocks_;       // offset -> bytes
  std::vector<std::pair<std::uint64_t, Use>> leaving_;  // blocks to be freed once their last use was executed
  std::mutex staging_mutex_;
  std::condition_variable returned_;
  std::array<Chunk, chunk_count> chunks_{};
  std::uint32_t borrowed_ = 0;  // one bit a chunk
};

}  // namespace guest
