// The part of a GPU's time that a VM has had lately, in percent: what its guests see as utilisation. The GPU's own would tell
// them what other VMs do.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

#include "host/base/event_loop.h"

namespace host::broker {

class Utilization {
 public:
  // Of at least so much time; the driver's samples come five times a second.
  static constexpr auto least = std::chrono::seconds(1);
  static constexpr auto between = std::chrono::milliseconds(250);  // the marks

  // `had`: up to now. What comes sooner than `between` after the last is left out.
  void note(Clock::time_point now, Clock::duration had) {
    if (!marks_.empty() && now - marks_.back().at < between) return;
    marks_.push_back({now, had});
    while (marks_.size() > 1 && now - marks_[1].at >= least) marks_.pop_front();
  }

  // Nothing: it has not been looked at for long enough.
  std::optional<std::uint32_t> percent(Clock::time_point now, Clock::duration had) const {
    if (marks_.empty() || now - marks_.front().at < between) return std::nullopt;
    const std::chrono::duration<double> part = had - marks_.front().had, time = now - marks_.front().at;
    const double percent = 100 * part.count() / time.count();
    return static_cast<std::uint32_t>(std::clamp(percent + 0.5, 0.0, 100.0));
  }

 private:
  struct Mark {
    Clock::time_point at;
    Clock::duration had;
  };
  std::deque<Mark> marks_;  // the first is the one to compare with
};

}  // namespace host::broker
