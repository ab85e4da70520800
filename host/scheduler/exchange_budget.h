// The time that one GPU's exchanges may spend in the driver's locks before a lease is due to end.
//
// Policy owns it: it asks before it ends a lease early, and reports each exchange that was carried out. The budget grows
// with time, up to a limit; an early exchange costs what recent exchanges have taken. docs/design/048-gpu-time.md has the
// measurement behind each constant.
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
  // Adds what was earned since the last call. True if an exchange can be paid.
  bool can_afford(Time now) {
    const auto earned = std::chrono::duration_cast<Time>((now - std::exchange(earned_until_, now)) * earned_part);
    left_ = std::min(most, left_ + earned);
    return left_ >= cost_;
  }
  void spend() { left_ -= cost_; }
  // An exchange has taken this long.
  void learn(Time took) { cost_ = (7 * cost_ + took) / 8; }

 private:
  static constexpr double earned_part = 0.125;  // share of the time that may go into exchanges that are not due
  static constexpr Time most = std::chrono::milliseconds(20);

  Time left_{}, earned_until_{};
  Time cost_ = std::chrono::milliseconds(1);  // recent duration of an exchange
};

}  // namespace host::scheduler
