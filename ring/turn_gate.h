// Taking turns on one GPU. In a worker the channels pass a gate before they give the GPU work, and a keeper says when a
// turn is over; the scheduler of turns says whose turn it is. ring/turns.h has the words that they share.
//
//   channel                            keeper
//   inside = 1                         reads a grant that ends the turn, or gives the turn back itself
//   fence                    D         fence
//   look at the grant                  look at `inside` of every channel
//   not let in? inside = 0, wait       none? nothing more will be submitted under this grant
//
// D is a pair of sequentially consistent fences: a channel that still saw the old grant is seen inside. Leave either
// out and a channel submits after the keeper has said that it will not, beside the process whose turn it then is.
//
// B, given back -> next turn: what a process did in its turn comes before what the next one does in its own. Each link
// of the way there has the letter: out of the gate, the answer, the grant.
//
// Covered by: the model turns and the explorer's scenario turns, each with mutants (docs/models.md).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ring/mutants.h"
#include "ring/turns.h"

namespace ring {

// What a channel finds at the gate.
enum class Entry : std::uint8_t {
  LetIn,  // submit, then leave()
  Shut,   // until the grant changes: sleep
  Soon,   // look again: the keeper tries to take the turn away, and where it fails no grant changes and nobody is woken
};

// What one worker's threads share for one GPU, in memory of its own. `channels` of them, each with a flag of its own,
// which only its thread writes.
template <std::size_t channels>
class TurnGate {
 public:
  TurnGate(const DeviceGrant& grant, DeviceRequest& request) : grant_(grant), request_(request) {}

  // ---- a channel --------------------------------------------------------------------------------------------------

  // `under` becomes the grant that was found.
  Entry enter(std::size_t channel, Grant& under) {
    inside_[channel].store(1, std::memory_order_relaxed);
    if (!wrong(Mutant::entry_fence)) std::atomic_thread_fence(std::memory_order_seq_cst);  // D
    under = grant();
    Entry entry = entry_under(under);
    if (entry != Entry::LetIn && is_left(under)) entry = Entry::LetIn;
    if (entry != Entry::LetIn) inside_[channel].store(0, std::memory_order_relaxed);
    return entry;
  }
  void leave(std::size_t channel) {
    const bool wrongly = wrong(Mutant::leave_relaxed);
    inside_[channel].store(0, wrongly ? std::memory_order_relaxed : std::memory_order_release);  // B
  }

  // ---- a worker whose scheduler has ended -------------------------------------------------------------------------

  // Whether that is so. Then nobody ends the grant that is shown, so it lets everybody in; one with another number, which the
  // next scheduler gives, means what it says.
  void left_alone(bool yes) { left_.store(yes ? grant().number : no_turn, std::memory_order_relaxed); }

  // ---- the keeper -------------------------------------------------------------------------------------------------

  Grant grant() const { return Grant::of(grant_.word.load(std::memory_order_acquire)); }
  // What enter() would find now, if there is a scheduler.
  Entry look() const { return entry_under(grant()); }

  // True when nobody is inside, after a grant that lets nobody in has been seen.
  bool empty() const {
    if (!wrong(Mutant::keeper_fence)) std::atomic_thread_fence(std::memory_order_seq_cst);  // D
    for (const std::atomic<std::uint32_t>& one : inside_)
      if (one.load(std::memory_order_acquire) != 0) return false;  // B
    return true;
  }
  // Whether a large copy needs no turn. It is counted as under way before; if it needs one, it is counted no more.
  bool lets_in_beside() const {
    if (!wrong(Mutant::entry_fence)) std::atomic_thread_fence(std::memory_order_seq_cst);  // D
    const Grant now = grant();
    return now.mode == GrantMode::Open || now.mode == GrantMode::Told || !now.copies;
  }
  // True when no copy is under way, after a grant that lets none in has been seen.
  bool is_without(const std::atomic<std::uint32_t>& copies) const {
    if (!wrong(Mutant::keeper_fence)) std::atomic_thread_fence(std::memory_order_seq_cst);  // D
    return copies.load(std::memory_order_acquire) == 0;                                     // B
  }
  // The same without an order: whether some channel is making a call just now.
  bool is_used() const {
    for (const std::atomic<std::uint32_t>& one : inside_)
      if (one.load(std::memory_order_relaxed) != 0) return true;
    return false;
  }
  // Lets nobody in under this turn any more. False: somebody is inside, and the turn goes on.
  bool withdraw(Grant turn) {
    withdrawn_.store(turn.number, std::memory_order_relaxed);
    const bool withdrawn = wrong(Mutant::withdrawn_unseen) || empty();
    withdrawn_.store(withdrawn ? turn.number | for_good : no_turn, std::memory_order_relaxed);
    return withdrawn;
  }
  // Tells the scheduler that this grant was seen.
  void hear(Grant grant) { request_.heard.store(grant.number, std::memory_order_relaxed); }
  // Tells the scheduler: nothing of this process is submitted or running under this grant.
  void give_back(Grant grant) { request_.given_back.store(grant.number, std::memory_order_release); }  // B
  // Tells it: what is left under this grant waits for a value in memory, which somebody may never write, and what is behind
  // that wait runs when it is there, whoever's turn it is then. A call that waits for it may be inside.
  void hold_up(Grant grant) { request_.held_up.store(grant.number, std::memory_order_release); }  // B
  // That is so no more. Where it was not, nothing is written: the scheduler looks at these words all the time.
  void go_on() {
    if (request_.held_up.load(std::memory_order_relaxed) != 0) request_.held_up.store(0, std::memory_order_relaxed);
  }

 private:
  // Beside a grant's number, which has 27 bits.
  static constexpr std::uint32_t for_good = 1u << 31, no_turn = 1u << 30;

  Entry entry_under(Grant grant) const {
    if (grant.mode != GrantMode::Turn) return grant.mode == GrantMode::Closed ? Entry::Shut : Entry::LetIn;
    const std::uint32_t withdrawn = withdrawn_.load(std::memory_order_relaxed);
    if (withdrawn == (grant.number | for_good)) return Entry::Shut;
    if (withdrawn != grant.number) return Entry::LetIn;
    return wrong(Mutant::withdrawal_slept) ? Entry::Shut : Entry::Soon;
  }

  bool is_left(Grant grant) const {
    const std::uint32_t left = left_.load(std::memory_order_relaxed);
    return wrong(Mutant::left_unnumbered) ? left != no_turn : left == grant.number;
  }

  const DeviceGrant& grant_;
  DeviceRequest& request_;
  std::atomic<std::uint32_t> inside_[channels] = {};
  std::atomic<std::uint32_t> withdrawn_{no_turn};  // the turn that the keeper takes away, or has taken away for good
  std::atomic<std::uint32_t> left_{no_turn};       // the last grant of a scheduler that has ended
};

// ---- the scheduler --------------------------------------------------------------------------------------------------

// Whoever sleeps on the word is still to be woken.
inline void give(DeviceGrant& words, Grant grant) { words.word.store(grant.word(), std::memory_order_release); }  // B
inline std::uint32_t answer_of(const DeviceRequest& words) {
  return words.given_back.load(std::memory_order_acquire);  // B
}
inline std::uint32_t held_up_under(const DeviceRequest& words) {
  return words.held_up.load(std::memory_order_acquire);  // B
}

// Whether the answer says that nothing of its process is submitted or running any more: before the first turn.
inline bool is_answered(Grant grant, std::uint32_t answer) {
  return wrong(Mutant::first_unanswered) || answer == grant.number;
}
// Whether the answer ends the turn with this number. The holder's grant is `now`: the turn itself, which may be given
// back early, or one that has ended it since. An answer to an older grant may come as late as the next turn.
inline bool is_over(std::uint32_t turn, Grant now, std::uint32_t answer) {
  if (wrong(Mutant::answer_unnumbered)) return answer != 0;
  if (wrong(Mutant::early_unheard) && now.number == turn) return false;
  return answer == turn || answer == now.number;
}
// Whether what is left under this grant waits for values in memory: the others need not wait for its end.
inline bool is_held_up(Grant grant, std::uint32_t held_up_under) {
  return !wrong(Mutant::held_up_unheard) && held_up_under != 0 && held_up_under == grant.number;
}

}  // namespace ring
