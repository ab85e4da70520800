// The arena's segments. Each is a part of the arena that is registered with the GPU by a registration of its own, or
// that is not registered. The driver refuses a copy that reaches from one registration into the next
// (docs/design/015-joined-registrations.md). So each block of pinned memory lies in one segment, and segments without
// blocks are joined when a larger block needs the room.
//
// Not thread-safe: the arena calls it under its own lock.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace guest {

class Segments {
 public:
  // Unknown: the wait for the worker's reply was given up.
  enum class Registered : std::uint8_t { No, Yes, Unknown };
  struct Segment {
    std::uint64_t start, end;
    enum class State : std::uint8_t { Free, Registered, Asked, AskedToJoin } state = State::Free;

    std::uint64_t bytes() const { return end - start; }
    bool registered() const { return state == State::Registered; }
  };
  // Asks the worker to register [start, end). Yes also if exactly that range is registered already. `join`: the
  // registrations inside are given up for it; after No, none of them is left.
  using Ask = std::function<Registered(std::uint64_t start, std::uint64_t end, bool join)>;
  // Whether no block lies in [start, end).
  using IsEmpty = std::function<bool(std::uint64_t start, std::uint64_t end)>;

  // Offsets in the arena, multiples of ring::huge_page. [start, first_end) is registered, in one registration with the
  // staging chunks before it, and so is never joined with another. [first_end, end) is not registered. `may_join`: the
  // worker knows the call that joins.
  Segments(std::uint64_t start, std::uint64_t first_end, std::uint64_t end, bool may_join, Ask ask);

  const std::vector<Segment>& all() const { return segments_; }
  // Makes room in one registration for a block of `bytes` that fits nowhere. If the outcome of an earlier request is
  // unknown, settles that first. True: try the block again. False: nothing has changed that would help.
  bool add_room(std::uint64_t bytes, const IsEmpty& is_empty);
  // The largest registration that add_room() could make, in bytes.
  std::uint64_t largest_room(const IsEmpty& is_empty) const;

 private:
  struct Run {  // segments [first, last]; of the last one only the part up to `end`
    std::size_t first, last;
    std::uint64_t end;
  };
  bool can_move(std::size_t i, const IsEmpty& is_empty) const;
  Registered register_free(std::uint64_t bytes);
  Registered join(std::uint64_t bytes, const IsEmpty& is_empty);
  bool find_run(std::uint64_t bytes, const IsEmpty& is_empty, Run& best) const;
  Registered settle(std::size_t i);
  void replace(std::size_t first, std::size_t last, std::uint64_t end, Segment::State state);
  void merge_free();

  std::vector<Segment> segments_;  // one after the other, without a gap
  const bool may_join_;
  const Ask ask_;
};

}  // namespace guest
