// The arena in segments: which parts of it are registered with the GPU, each by a registration of its own. The driver
// refuses a copy that reaches from one registration into the next (docs/design/015-joined-registrations.md), so no
// block of pinned memory does, and segments that hold no block are joined where a larger block needs the room.
//
// Not thread-safe: the arena's lock is held around every call.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace guest {

class Segments {
 public:
  // Unknown: the wait for the worker's answer was given up.
  enum class Registered : std::uint8_t { No, Yes, Unknown };
  struct Segment {
    std::uint64_t start, end;
    enum class State : std::uint8_t { Free, Registered, Asked, AskedToJoin } state = State::Free;

    std::uint64_t bytes() const { return end - start; }
    bool registered() const { return state == State::Registered; }
  };
  // Asks the worker to register [start, end), or to find that it has registered just that. `join`: what is registered
  // inside is given up for it; No: then nothing inside is registered any more.
  using Ask = std::function<Registered(std::uint64_t start, std::uint64_t end, bool join)>;
  // Whether no block lies in [start, end).
  using IsEmpty = std::function<bool(std::uint64_t start, std::uint64_t end)>;

  // [start, first_end) is registered, together with what lies before it and never moves, and so joins nothing.
  // [first_end, end) is not. All are multiples of ring::huge_page. `may_join`: the worker knows how.
  Segments(std::uint64_t start, std::uint64_t first_end, std::uint64_t end, bool may_join, Ask ask);

  const std::vector<Segment>& all() const { return segments_; }
  // Makes room in one registration for a block of `bytes` that fits nowhere, or settles what an earlier question that
  // was not answered has come to. False: nothing has changed that would help.
  bool add_room(std::uint64_t bytes, const IsEmpty& is_empty);
  // The most bytes that add_room() could put into one registration.
  std::uint64_t largest_room(const IsEmpty& is_empty) const;

 private:
  struct Run {  // segments [first, last]; the last one's part that is taken ends at `end`
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
