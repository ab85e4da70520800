// Whether one client gives a GPU work without a turn, or more than it says, by samples of what the GPU did. Pure rules: the
// broker's look at samples (host/broker/turn_watch.h) calls them, and tests do in virtual time.
//
// A sample names a process with a part of the GPU's time. Who may have used the GPU by right at any time of it, or
// shortly before, is not suspected: so neither is whoever takes its turns as well. Samples count large copies, too, which
// need no turn: so the first sample only makes them need one. docs/design/028-turns.md has what samples look like.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

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
  // Between two samples. Of processes that are busy together a sample often names but one.
  static constexpr Time remembered_for = std::chrono::seconds(2);

  enum class Verdict : std::uint8_t {
    Nothing,
    Suspected,  // it may be large copies, which pass no gate: they are to, and it is to answer (Policy::suspect())
    Caught,     // it was named again after its answer, and had no turn meanwhile; or it never answers, or is deaf
  };

  // A sample that names the client. `right`: as told after the sample's end.
  Verdict named(const Sample& sample, const Right& right) {
    if (sample.percent < least_percent || sample.from >= sample.to || sample.from < right.until + margin)
      return Verdict::Nothing;
    const bool never_answers = right.unanswered >= most_unanswered || right.is_deaf;
    const bool again = until_ == right.until && sample.to - newest_.to <= remembered_for;
    if (again && !never_answers && !counts_beside(sample, right)) return Verdict::Nothing;
    before_ = newest_, newest_ = sample;
    until_ = right.until;
    return again || never_answers ? Verdict::Caught : Verdict::Suspected;
  }
  // The two newest that counted.
  const Sample& before() const { return before_; }
  const Sample& newest() const { return newest_; }

 private:
  // Beside the first: it is another one, of a time without the copies that were under way.
  bool counts_beside(const Sample& sample, const Right& right) const {
    return sample.from >= newest_.to && right.no_copies_since && sample.from >= *right.no_copies_since + margin;
  }

  std::optional<Time> until_;  // against which right the newest sample was
  Sample before_, newest_;
};

// Of a client whose gate is open beside others' turns, since its VM goes before them: whether it uses much more of the GPU
// than its VM is charged with.
class Overuse {
 public:
  // A sample often names but one of the processes that were at work, so one sample tells little.
  static constexpr Time looked_at = std::chrono::seconds(2);
  static constexpr double most_beyond = 0.4;  // of the GPU's time

  // A sample that names the client; `charged`: the part that its VM is charged with, of late.
  bool named(const Suspicion::Sample& sample, double charged) {
    if (!samples_.empty() && sample.from < samples_.back().to) return false;  // the same once more
    const Time since = sample.to - looked_at;
    samples_.push_back({std::max(sample.from, since), sample.to, sample.percent});  // of a longer one its end counts
    while (samples_.front().from < since) samples_.pop_front();
    Time used{};
    for (const Suspicion::Sample& one : samples_) used += (one.to - one.from) * one.percent / 100;
    return used > std::chrono::duration_cast<Time>(looked_at * (charged + most_beyond));
  }

 private:
  std::deque<Suspicion::Sample> samples_;
};

}  // namespace host::turns
