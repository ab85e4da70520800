// Assigns a session's callback slots to the worker's threads (host/untrusted/lanes/lanes.h). A thread that has filled a
// slot waits for the answer and gives the slot back. Or it leaves the slot, and no thread waits for the answer.
//
// If no slot is free, a thread takes a left one and waits for its answer before it fills it. A left call thus delays a
// later one no longer than the guest takes for it.
//
// Thread-safety: any thread. Covered by: the model lanes and the explorer's scenario lanes (docs/models.md).
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "ring/queue/lane.h"
#include "ring/verify/mutants.h"

namespace host {

template <std::size_t count>
class LanePool {
 public:
  // Call it before any thread takes a slot.
  void add(std::size_t lane, ring::Shared<ring::LaneControl> words) { lanes_[lane].caller = ring::LaneCaller(words); }

  // The worker's half of a callback slot. Only the thread that has taken the slot may use it.
  ring::LaneCaller& caller(std::size_t lane) { return lanes_[lane].caller; }

  // Takes a slot whose last use is answered. `await(lane)` waits for that answer, and returns false if the session
  // ends; `over()` is true if it has ended. Nothing if the session ends.
  template <class Await, class Over>
  std::optional<std::size_t> take(Await await, Over over) {
    std::unique_lock lock(mutex_);
    while (!over()) {
      std::optional<std::size_t> lane = find(State::Free);
      if (!lane && !ring::wrong(ring::Mutant::left_kept)) lane = find(State::Left);
      if (!lane) {
        released_.wait(lock);
        continue;
      }
      const bool left = lanes_[*lane].state == State::Left && !ring::wrong(ring::Mutant::left_unanswered);
      lanes_[*lane].state = State::Busy;
      lock.unlock();
      return !left || await(*lane) ? lane : std::nullopt;
    }
    return std::nullopt;
  }
  // The slot's use is answered.
  void give_back(std::size_t lane) { release(lane, State::Free); }
  // The slot is filled, and no thread waits for the answer.
  void leave(std::size_t lane) { release(lane, State::Left); }
  // Ends the waits for a slot. Call it when `over` has become true.
  void end() {
    { const std::lock_guard lock(mutex_); }
    released_.notify_all();
  }

 private:
  enum class State : std::uint8_t { Free, Busy, Left };
  struct Lane {
    ring::LaneCaller caller;
    State state = State::Free;
  };

  // Called under mutex_. Finds a slot in this state; of Left slots it prefers one that is answered.
  std::optional<std::size_t> find(State state) {
    std::optional<std::size_t> found;
    for (std::size_t k = 0; k < count; ++k) {
      if (lanes_[k].state != state) continue;
      if (state == State::Free || lanes_[k].caller.look() != ring::Peer::Wait) return k;
      if (!found) found = k;
    }
    return found;
  }

  void release(std::size_t lane, State state) {
    {
      const std::lock_guard lock(mutex_);
      lanes_[lane].state = state;
    }
    if (state == State::Free || !ring::wrong(ring::Mutant::left_unnotified)) released_.notify_one();
  }

  std::mutex mutex_;  // guards the states
  std::condition_variable released_;
  std::array<Lane, count> lanes_;
};

}  // namespace host
