// Gives a session's lanes to the threads of the worker (host/untrusted/lanes/lanes.h). A thread that has filled a lane waits for
// the answer and gives the lane back, or it leaves the lane: then no thread waits for the answer.
//
// Where no lane is free, a thread takes one that was left, and waits for that answer before it fills the lane. So a call
// that was left delays a later one no longer than the guest takes for it.
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
  // Before any thread takes a lane.
  void add(std::size_t lane, ring::Shared<ring::LaneControl> words) { lanes_[lane].caller = ring::LaneCaller(words); }

  // The worker's half of a lane. Only the thread that has taken the lane may use it.
  ring::LaneCaller& caller(std::size_t lane) { return lanes_[lane].caller; }

  // Takes a lane whose last use is answered. `await`: bool(lane), which waits for that answer, and returns false if the
  // session ends; `over`: bool(), whether it has ended. Nothing: the session ends.
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
  // The lane's use is answered.
  void give_back(std::size_t lane) { release(lane, State::Free); }
  // The lane is filled, and no thread waits for the answer.
  void leave(std::size_t lane) { release(lane, State::Left); }
  // Call it when `over` has become true: ends the waits for a lane.
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

  // Under mutex_. Finds a lane in this state; among Left lanes it prefers one that is answered.
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

  std::mutex mutex_;  // of the states
  std::condition_variable released_;
  std::array<Lane, count> lanes_;
};

}  // namespace host
