// How a VM submits work to one GPU: whether the VM queues ahead of its waits, so that it fills the gaps of similar VMs.
//
// Policy keeps one SubmissionPattern for each VM and updates it with each report of the VM's workers.
//
// Units: nanoseconds since boot. Thread-safety: one thread at a time.
#pragma once

#include <cstdint>

#include "host/scheduler/gpu_time.h"

namespace host::scheduler {

// The sum of the reports of a VM's workers about one GPU.
struct Demand {
  std::uint64_t submitted = 0;  // number of calls that gave the GPU work
  std::uint64_t waits = 0;      // number of calls that waited for the GPU, and have returned
  bool wants = false;           // at least one submission is not covered by a returned wait
  bool calls = false;           // at least one call is in the driver, whatever the call does
};

class SubmissionPattern {
 public:
  // Returns whether the VM may share a lease with other VMs that fill gaps.
  bool fills_gaps() const { return fills_gaps_; }
  // Decides again once there are enough waits, or after a long time without any wait. `wants_for`: how long the VM has
  // wanted the GPU. A VM of the latency class never fills gaps.
  void update(const Demand& demand, Time wants_for, bool latency);

 private:
  bool fills_gaps_ = true;
  std::uint64_t judged_submitted_ = 0, judged_waits_ = 0;  // the counts at the last decision
};

}  // namespace host::scheduler
