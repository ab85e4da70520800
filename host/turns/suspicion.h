// Whether one client gives a GPU work without a turn, by samples of what the GPU did. A pure rule: the broker's look at
// samples (host/broker/turn_watch.h) calls it, and tests do in virtual time.
//
// A sample names a process with a part of the GPU's time. Who may have used the GPU by right at any time of it, or
// shortly before, is not suspected: so neither is whoever takes its turns as well. No honest worker may be ended, so one
// sample is not enough. docs/design/028-turns.md has what samples look like.
#pragma once

#include <chrono>

#include "host/turns/policy.h"

namespace host::turns {

class Suspicion {
 public:
  // Of a process: from when to when, and how much of that time it had the GPU.
  struct Sample {
    Time from{}, to{};
    unsigned percent = 0;
  };
  // For what clocks and samples are late: half a sample.
  static constexpr Time margin = std::chrono::milliseconds(100);
  // Two processes that are busy all the time are named with half of it each. What a worker may do without a turn, a
  // context or a large copy, is far less of a GPU's multiprocessors.
  static constexpr unsigned least_percent = 25;
  static constexpr int enough = 2;  // samples, in looks of their own
  // Between the two. Of processes that are busy together a sample often names but one.
  static constexpr Time remembered_for = std::chrono::seconds(2);

  // A sample that names the client, which may have used the GPU by right until then: as told after the sample's end.
  // True: it has worked without a turn.
  bool named(const Sample& sample, Time by_right) {
    if (sample.percent < least_percent || sample.from >= sample.to || sample.from < by_right + margin) return false;
    const bool again = times_ > 0 && by_right == by_right_ && sample.from >= newest_.to;
    times_ = again && sample.to - newest_.to <= remembered_for ? times_ + 1 : 1;
    by_right_ = by_right;
    before_ = newest_, newest_ = sample;
    return times_ >= enough;
  }
  // The two newest that counted.
  const Sample& before() const { return before_; }
  const Sample& newest() const { return newest_; }

 private:
  int times_ = 0;
  Time by_right_{};
  Sample before_, newest_;
};

}  // namespace host::turns
