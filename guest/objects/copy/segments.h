// The arena's segments: ranges of the arena, each registered with the GPU by its own registration, or not registered.
// The driver refuses a copy that crosses from one registration into the next (docs/design/015-joined-registrations.md).
// Each block of pinned memory therefore lies in one segment. Segments without blocks are joined when a larger block
// needs their space.
//
// Not thread-safe: the arena calls this class under the arena's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace guest {

class Segments {
 public:
  // Unknown: the guest gave up waiting for the worker's reply.
  enum class Registered : std::uint8_t { No, Yes, Unknown };
  struct Segment {
    std::uint64_t start, end;
    enum class State : std::uint8_t { Free, Registered, Asked, AskedToJoin } state = State::Free;

    std::uint64_t bytes() const { return end - start; }
    bool registered() const { return state == State::Registered; }
  };
  // Asks the worker to register [start, end). Returns Yes, too, if exactly that range is already registered. `join`:
  // the new registration replaces the registrations inside the range; if the result is No, none of these is left.
  using Ask = std::function<Registered(std::uint64_t start, std::uint64_t end, bool join)>;
  // Returns whether no block lies in [start, end).
  using IsEmpty = std::function<bool(std::uint64_t start, std::uint64_t end)>;

  // The arguments are offsets in the arena, multiples of ring::huge_page. [start, first_end) shares one registration
  // with the staging chunks before it, and is never joined with another segment. [first_end, end) is not registered.
  // `may_join`: the worker knows the call that joins registrations.
  Segments(std::uint64_t start, std::uint64_t first_end, std::uint64_t end, bool may_join, Ask ask);

  const std::vector<Segment>& all() const { return segments_; }
  // Makes space in one registration for a block of `bytes` that fits nowhere. First repeats an earlier request whose
  // outcome is unknown. Returns true if the caller should try the block again, and false if there is no more space than
  // before.
  bool add_room(std::uint64_t bytes, const IsEmpty& is_empty);
  // Returns the size of the largest registration that add_room() could make, in bytes.
  std::uint64_t largest_room(const IsEmpty& is_empty) const;

 private:
  struct Run {  // segments [first, last]; of the last segment, the bytes up to `end`
    std::size_t first, last;
    std::uint64_t end;
  };
  bool can_move(std::size_t i, const IsEmpty& is_empty) const;
  Registered register_free(std::uint64_t bytes);
  Registered join(std::uint64_t bytes, const IsEmpty& is_empty);
  bool find_run(std::uint64_t bytes, const IsEmpty& is_empty, Run& best) const;
  Registered resolve(std::size_t i);
  void replace(std::size_t first, std::size_t last, std::uint64_t end, Segment::State state);
  void merge_free();

  std::vector<Segment> segments_;  // contiguous, in order
  const bool may_join_;
  const Ask ask_;
};

}  // namespace guest
