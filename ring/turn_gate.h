// A worker's half of taking turns on one GPU: its channels pass a gate before they give the GPU work, and a keeper says
// when a turn is over. ring/turns.h has the words that the scheduler shares.
//
//   channel                            keeper
//   inside = 1                         reads a grant that ends the turn, or gives the turn back itself
//   fence                    D         fence
//   look at the grant                  look at `inside` of every channel
//   another's turn? wait               none? nothing more will be submitted under this grant
//
// D is a pair of sequentially consistent fences: a channel that still saw the old grant is seen inside. Leave either
// out and a channel submits after the keeper has said that it will not, beside the process whose turn it then is.
//
// B, given back -> next turn: what this process did in its turn comes before what the scheduler does with the answer.
//
// Covered by: tests/unit/session_turns.cc and tests/unit/turns_scheduler.cc, under ThreadSanitizer, too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ring/turns.h"

namespace ring {

// What one worker's threads share for one GPU, in memory of its own. `channels` of them, each with a flag of its own,
// which only its thread writes.
template <std::size_t channels>
class TurnGate {
 public:
  TurnGate(const DeviceGrant& grant, DeviceRequest& request) : grant_(grant), request_(request) {}

  // ---- a channel --------------------------------------------------------------------------------------------------

  // True: submit under the grant that is now in `under`, then leave(). False: it is not this process's turn.
  bool may_enter(std::size_t channel, Grant& under) {
    inside_[channel].store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // D
    under = grant();
    if (allows(under)) return true;
    inside_[channel].store(0, std::memory_order_relaxed);
    return false;
  }
  void leave(std::size_t channel) { inside_[channel].store(0, std::memory_order_release); }  // B

  // ---- the keeper -------------------------------------------------------------------------------------------------

  Grant grant() const { return Grant::of(grant_.word.load(std::memory_order_acquire)); }

  // True when nobody is inside, after a grant that lets nobody in has been seen.
  bool empty() const {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // D
    for (const std::atomic<std::uint32_t>& one : inside_)
      if (one.load(std::memory_order_acquire) != 0) return false;  // B
    return true;
  }
  // Lets nobody in under this turn any more. False: somebody is inside, and the turn goes on.
  bool withdraw(Grant turn) {
    withdrawn_.store(turn.number, std::memory_order_relaxed);
    if (empty()) return true;
    withdrawn_.store(no_turn, std::memory_order_relaxed);
    return false;
  }
  // Tells the scheduler: nothing of this process is submitted or running under this grant.
  void give_back(Grant grant) { request_.given_back.store(grant.number, std::memory_order_release); }  // B

 private:
  static constexpr std::uint32_t no_turn = ~0u;

  bool allows(Grant grant) const {
    if (grant.mode == GrantMode::Turn) return grant.number != withdrawn_.load(std::memory_order_relaxed);
    return grant.mode != GrantMode::Closed;
  }

  const DeviceGrant& grant_;
  DeviceRequest& request_;
  std::atomic<std::uint32_t> inside_[channels] = {};
  std::atomic<std::uint32_t> withdrawn_{no_turn};
};

}  // namespace ring
