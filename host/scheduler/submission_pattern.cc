#include "host/scheduler/submission_pattern.h"

#include <chrono>

namespace host::scheduler {
namespace {

using namespace std::chrono_literals;

// docs/design/048-gpu-time.md has the measurement behind each constant.
constexpr std::uint64_t launches_a_wait = 32;  // a VM with more launches per wait queues ahead and fills gaps
constexpr std::uint64_t waits_to_judge = 8;

}  // namespace

void SubmissionPattern::update(const Demand& demand, Time wants_for, bool latency) {
  const std::uint64_t submitted = demand.submitted - judged_submitted_;
  const std::uint64_t waits = demand.waits - judged_waits_;
  const bool is_deep = demand.wants && wants_for > 1s && submitted > 8 * launches_a_wait;
  if (waits < waits_to_judge && !is_deep) return;
  fills_gaps_ = !latency && submitted > launches_a_wait * waits;
  judged_submitted_ = demand.submitted, judged_waits_ = demand.waits;
}

}  // namespace host::scheduler
