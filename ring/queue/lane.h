// A call from the worker to the program, on one lane of the slot: the worker's half and the guest's half.
//
// Ordering. Two edges, and each line below that makes or takes one names it:
//   L  fill -> call    token and kind are written before `sequence` says so, and what the function may look at, too
//   D  call -> answer  the result is written before `done` says so, and all that the function has done, too
// D also covers the next use: a lane is filled again only after its answer was seen. Sleeping and waking is
// ring/queue/parking.h, both ways. Covered by: the model lanes, the explorer's scenario lanes (docs/models.md), and
// ThreadSanitizer under tests/loopback/lanes.cc.
//
// Trust. Each side keeps the number of the lane's use privately, only ever publishes it, and holds the other's against
// it: there are two numbers that an honest peer can show, and any other is Peer::Broken. So an answer given twice is
// the number of a use that is over, or of one that has not begun. Token and kind mean nothing until the guest has looked
// them up.
#pragma once

#include <atomic>
#include <cstdint>

#include "ring/layout.h"
#include "ring/mutants.h"
#include "ring/queue/peer.h"
#include "ring/shared.h"

namespace ring {

// The worker's half. One thread at a time.
class LaneCaller {
 public:
  LaneCaller() = default;
  explicit LaneCaller(Shared<LaneControl> lane) : lane_(lane) {}

  // Fills the lane. Wait: its last use has not been answered, and nothing is changed.
  Peer post(std::uint32_t kind, std::uint64_t token) {
    if (const Peer last = look(); last != Peer::Ok && !wrong(Mutant::lane_refilled)) return last;
    if (wrong(Mutant::lane_early)) publish();
    lane_[&LaneControl::token].store(token, std::memory_order_relaxed);
    lane_[&LaneControl::kind].store(kind, std::memory_order_relaxed);
    if (!wrong(Mutant::lane_early)) publish();
    return Peer::Ok;
  }
  // Ok: the last use has been answered, or there was none.
  Peer look() const {
    const std::uint64_t done = lane_[&LaneControl::done].load(std::memory_order_acquire);  // D
    if (done == sequence_) return Peer::Ok;
    return done == sequence_ - 1 ? Peer::Wait : Peer::Broken;
  }
  // Preconditions: look() said Ok after a post().
  std::int32_t result() const { return lane_[&LaneControl::result].load(std::memory_order_relaxed); }

 private:
  void publish() { lane_[&LaneControl::sequence].store(++sequence_, std::memory_order_release); }  // L

  Shared<LaneControl> lane_;
  std::uint64_t sequence_ = 0;
};

struct LaneCall {
  std::uint32_t kind = 0;
  std::uint64_t token = 0;
};

// The guest's half, of its callback thread.
class LaneCallee {
 public:
  LaneCallee() = default;
  explicit LaneCallee(Shared<LaneControl> lane) : lane_(lane) {}

  // Ok: `call` is to be made and then answered.
  Peer take(LaneCall& call) {
    const std::uint64_t sequence = lane_[&LaneControl::sequence].load(std::memory_order_acquire);  // L
    if (sequence == done_) return Peer::Wait;
    if (sequence != done_ + 1) return Peer::Broken;
    call.kind = lane_[&LaneControl::kind].load(std::memory_order_relaxed);
    call.token = lane_[&LaneControl::token].load(std::memory_order_relaxed);
    return Peer::Ok;
  }
  // Preconditions: take() said Ok, and this use has not been answered.
  void answer(std::int32_t result) {
    if (wrong(Mutant::answer_early)) publish();
    lane_[&LaneControl::result].store(result, std::memory_order_relaxed);
    if (!wrong(Mutant::answer_early)) publish();
  }

  // True if take() would find something. For parking: it needs no ordering of its own.
  bool anything() const { return lane_[&LaneControl::sequence].load(std::memory_order_relaxed) != done_; }

 private:
  void publish() { lane_[&LaneControl::done].store(++done_, std::memory_order_release); }  // D

  Shared<LaneControl> lane_;
  std::uint64_t done_ = 0;
};

}  // namespace ring
