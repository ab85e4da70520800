// Runs threads one at a time, in an order that a fuzzer's bytes determine. An input is a schedule, and repeats.
//
// A switch happens only at pass(). A thread that finds a lock taken calls blocked() until it gets the lock. If all
// remaining threads are blocked, the deadlock is a finding.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <semaphore>

#include "tests/fuzz/input.h"

namespace fuzz {

class Turns {
 public:
  static constexpr unsigned most_threads = 4;

  // Thread 0 begins. The running thread reads `in`.
  Turns(unsigned threads, Input& in) : in_(in), threads_(threads), alive_((1u << threads) - 1) { go_[0].release(); }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // The first call of the thread `self`.
  void begin(unsigned self) { go_[self].acquire(); }
  // Another thread may run here.
  void pass() {
    blocked_ = 0;
    if (points_left_ == 0) draw();
    if (points_left_-- == 0) give(alive_after(next_ % threads_, alive_));
  }
  // The current thread cannot continue before another thread has run.
  void blocked() {
    blocked_ |= 1u << current_;
    const unsigned others = alive_ & ~blocked_;
    require(others != 0, "no channel waits for another for ever");
    give(alive_after(current_, others));
  }
  // The last call of a thread.
  void end() {
    alive_ &= ~(1u << current_);
    blocked_ = 0;
    if (alive_ == 0) return;
    current_ = alive_after(current_, alive_);
    go_[current_].release();
  }

 private:
  // Chooses the number of points until the next switch, and the next thread. At the end of input the current thread
  // stays.
  void draw() {
    points_left_ = std::numeric_limits<unsigned>::max();
    if (in_.empty()) return;
    const auto choice = in_.number();
    points_left_ = choice & 0xf;
    next_ = choice >> 4;
  }
  unsigned alive_after(unsigned from, unsigned among) const {
    while ((among & 1u << from) == 0) from = (from + 1) % threads_;
    return from;
  }
  void give(unsigned next) {
    if (next == current_) return;
    const unsigned self = current_;
    current_ = next;
    go_[next].release();
    go_[self].acquire();
  }

  Input& in_;
  const unsigned threads_;
  unsigned alive_, blocked_ = 0, current_ = 0;
  unsigned points_left_ = 0, next_ = 0;
  std::array<std::binary_semaphore, most_threads> go_{std::binary_semaphore{0}, std::binary_semaphore{0},
                                                      std::binary_semaphore{0}, std::binary_semaphore{0}};
};

}  // namespace fuzz
