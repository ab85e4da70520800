// The time budget for ending leases early on one GPU. An exchange of leases spends time in the driver's locks.
//
// Policy owns the budget: it asks the budget before it ends a lease early, and reports each exchange that was carried
// out. The budget grows with time, up to a limit; an early exchange costs as much time as recent exchanges have taken.
// docs/design/048-gpu-time.md has the measurement behind each constant.
//
// Units: nanoseconds since boot. Thread-safety: one thread at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

#include "host/scheduler/gpu_time.h"

namespace host::scheduler {

class ExchangeBudget {
 public:
  // Adds the time earned since the last call. Returns whether the budget can pay for an exchange.
  bool can_afford(Time now) {
    const auto earned = std::chrono::duration_cast<Time>((now - std::exchange(earned_until_, now)) * earned_part);
    left_ = std::min(most, left_ + earned);
    return left_ >= cost_;
  }
  void spend() { left_ -= cost_; }
  // Records that an exchange has taken this long.
  void learn(Time took) { cost_ = (7 * cost_ + took) / 8; }

 private:
  static constexpr double earned_part = 0.125;  // the part of the time that may be spent on early exchanges
  static constexpr Time most = std::chrono::milliseconds(20);

  Time left_{}, earned_until_{};
  Time cost_ = std::chrono::milliseconds(1);  // the recent duration of an exchange
};

}  // namespace host::scheduler
