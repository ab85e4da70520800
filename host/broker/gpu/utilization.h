// The recent share of a GPU's time that a VM has used, in percent, which its guests see as utilisation. The GPU's own
// utilisation would reveal the use of other VMs.
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
  // Averaged over at least this time; NVIDIA's driver samples five times a second.
  static constexpr auto least = std::chrono::seconds(1);
  static constexpr auto between = std::chrono::milliseconds(250);  // between marks

  // `had`: the VM's total GPU time so far. Ignored if the last mark is less than `between` old.
  void note(Clock::time_point now, Clock::duration had) {
    if (!marks_.empty() && now - marks_.back().at < between) return;
    marks_.push_back({now, had});
    while (marks_.size() > 1 && now - marks_[1].at >= least) marks_.pop_front();
  }

  // Nothing if the marks do not cover enough time yet.
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
  std::deque<Mark> marks_;  // the first is the reference
};

}  // namespace host::broker
