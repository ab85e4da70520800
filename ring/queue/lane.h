// A call from the worker to the program, in one callback slot (lane): the worker's half and the guest's half.
//
// Ordering. Two edges; each line below that releases or acquires one names it:
//   L fill -> call token, kind and status, and the memory that the function may read, are written before `sequence`
//   D call -> answer the result, and everything that the function has written, are written before `done`
// D also covers the next use: a lane is filled again only after its answer was seen, even if no thread waits for the
// answer (host/untrusted/lanes/lane_pool.h). ring/queue/parking.h describes how both sides sleep and wake. Covered by:
// the model lanes, the explorer's scenario lanes (docs/models.md), and ThreadSanitizer under tests/loopback/lanes.cc.
//
// Trust. Each side counts the uses of a lane in private memory, only publishes that count, and checks the other side's
// number against it. An honest peer shows one of two numbers; any other number is Peer::Broken. A duplicate answer has
// the number of a finished use, or of a use not yet begun. Token and kind mean nothing until the guest has looked them
// up.
//
// ```cpp
// void serve(ring::LaneCallee& lane, std::int32_t (*call_by_token)(std::uint64_t token)) {
//   ring::LaneCall call;
//   if (lane.take(call) == ring::Peer::Ok) lane.answer(call_by_token(call.token));
// }
// bool ask(ring::LaneCaller& lane, std::uint64_t token) {
//   return lane.post(IVGPU_LANE_HOST_FUNCTION, token) == ring::Peer::Ok;  // then look() until it is Ok again
// }
// ```
#pragma once

#include <atomic>
#include <cstdint>

#include "ring/layout/layout.h"
#include "ring/queue/peer.h"
#include "ring/shared/shared.h"
#include "ring/verify/mutants.h"

namespace ring {

// The worker's half. One thread at a time may use it.
class LaneCaller {
 public:
  LaneCaller() = default;
  explicit LaneCaller(Shared<LaneControl> lane) : lane_(lane) {}

  // Fills the lane. Peer::Wait: its last use is unanswered, and nothing changes.
  Peer post(std::uint32_t kind, std::uint64_t token, std::int32_t status = 0) {
    if (const Peer last = look(); last != Peer::Ok && !wrong(Mutant::lane_refilled)) return last;
    if (wrong(Mutant::lane_early)) publish();
    lane_[&LaneControl::token].store(token, std::memory_order_relaxed);
    lane_[&LaneControl::kind].store(kind, std::memory_order_relaxed);
    lane_[&LaneControl::status].store(status, std::memory_order_relaxed);
    if (!wrong(Mutant::lane_early)) publish();
    return Peer::Ok;
  }
  // Peer::Ok: the last use was answered, or there was none.
  Peer look() const {
    const std::uint64_t done = lane_[&LaneControl::done].load(std::memory_order_acquire);  // D
    if (done == sequence_) return Peer::Ok;
    return done == sequence_ - 1 ? Peer::Wait : Peer::Broken;
  }
  // Preconditions: look() has returned Ok since the last post().
  std::int32_t result() const { return lane_[&LaneControl::result].load(std::memory_order_relaxed); }

 private:
  void publish() { lane_[&LaneControl::sequence].store(++sequence_, std::memory_order_release); }  // L

  Shared<LaneControl> lane_;
  std::uint64_t sequence_ = 0;
};

struct LaneCall {
  std::uint32_t kind = 0;
  std::uint64_t token = 0;
  std::int32_t status = 0;
};

// The guest's half. Only the callback thread uses it.
class LaneCallee {
 public:
  LaneCallee() = default;
  explicit LaneCallee(Shared<LaneControl> lane) : lane_(lane) {}

  // Peer::Ok: the guest makes `call` and then answers it.
  Peer take(LaneCall& call) {
    const std::uint64_t sequence = lane_[&LaneControl::sequence].load(std::memory_order_acquire);  // L
    if (sequence == done_) return Peer::Wait;
    if (sequence != done_ + 1) return Peer::Broken;
    call.kind = lane_[&LaneControl::kind].load(std::memory_order_relaxed);
    call.token = lane_[&LaneControl::token].load(std::memory_order_relaxed);
    call.status = lane_[&LaneControl::status].load(std::memory_order_relaxed);
    return Peer::Ok;
  }
  // Preconditions: take() has returned Ok, and this use is unanswered.
  void answer(std::int32_t result) {
    if (wrong(Mutant::answer_early)) publish();
    lane_[&LaneControl::result].store(result, std::memory_order_relaxed);
    if (!wrong(Mutant::answer_early)) publish();
  }

  // True if take() would find a call. For parking: needs no ordering of its own.
  bool anything() const { return lane_[&LaneControl::sequence].load(std::memory_order_relaxed) != done_; }

 private:
  void publish() { lane_[&LaneControl::done].store(++done_, std::memory_order_release); }  // D

  Shared<LaneControl> lane_;
  std::uint64_t done_ = 0;
};

}  // namespace ring
