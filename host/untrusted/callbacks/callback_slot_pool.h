// Assigns a session's callback slots to the worker's threads (host/untrusted/callbacks/callback_slots.h). A thread that
// has filled a slot either waits for the answer and gives the slot back, or leaves the slot (leave()), and no thread
// waits for the answer.
//
// If no slot is free, a thread takes a slot that was left, and waits for the answer before it fills the slot again. A
// left call therefore delays a later call only until the guest has answered the left call.
//
// Thread-safety: any thread. Covered by: the model callback_slots and the explorer's scenario callback_slots
// (docs/models.md).
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "ring/base/mutex.h"
#include "ring/queue/callback_slot.h"
#include "ring/verify/mutants.h"

namespace host {

template <std::size_t count>
class CallbackSlotPool {
 public:
  // Must be called before any thread takes a slot.
  void add(std::size_t callback_slot, ring::Shared<ring::CallbackSlot> words) {
    callers_[callback_slot] = ring::CallbackCaller(words);
  }

  // Returns the worker's half of a callback slot. Only the thread that has taken the slot may use it.
  ring::CallbackCaller& caller(std::size_t callback_slot) { return callers_[callback_slot]; }

  // Takes a slot whose last use is answered. `await(callback_slot)` waits for that answer, and returns false if the
  // session ends; `over()` returns whether the session has ended. Returns nothing if the session ends.
  template <class Await, class Over>
  std::optional<std::size_t> take(Await await, Over over) {
    ring::UniqueLock lock(mutex_);
    while (!over()) {
      std::optional<std::size_t> callback_slot = find(State::Free);
      if (!callback_slot && !ring::wrong(ring::Mutant::left_kept)) callback_slot = find(State::Left);
      if (!callback_slot) {
        released_.wait(lock.native());
        continue;
      }
      const bool left = states_[*callback_slot] == State::Left && !ring::wrong(ring::Mutant::left_unanswered);
      states_[*callback_slot] = State::Busy;
      lock.unlock();
      return !left || await(*callback_slot) ? callback_slot : std::nullopt;
    }
    return std::nullopt;
  }
  // Gives back a slot whose use is answered.
  void give_back(std::size_t callback_slot) { release(callback_slot, State::Free); }
  // Leaves a filled slot. No thread waits for the answer.
  void leave(std::size_t callback_slot) { release(callback_slot, State::Left); }
  // Ends the waits for a slot. Must be called when `over` has become true.
  void end() {
    { const ring::MutexLock lock(mutex_); }
    released_.notify_all();
  }

 private:
  enum class State : std::uint8_t { Free, Busy, Left };

  // Finds a slot in this state. Among Left slots, prefers a slot that is answered.
  std::optional<std::size_t> find(State state) REQUIRES(mutex_) {
    std::optional<std::size_t> found;
    for (std::size_t k = 0; k < count; ++k) {
      if (states_[k] != state) continue;
      if (state == State::Free || callers_[k].look() != ring::Peer::Wait) return k;
      if (!found) found = k;
    }
    return found;
  }

  void release(std::size_t callback_slot, State state) {
    {
      const ring::MutexLock lock(mutex_);
      states_[callback_slot] = state;
    }
    if (state == State::Free || !ring::wrong(ring::Mutant::left_unnotified)) released_.notify_one();
  }

  std::array<ring::CallbackCaller, count> callers_;
  ring::Mutex mutex_;
  std::condition_variable released_;
  std::array<State, count> states_ GUARDED_BY(mutex_){};  // at first, all slots are Free
};

}  // namespace host
