// How a VM submits work to one GPU: whether it queues ahead of its waits, so that it fills the gaps of VMs like it.
//
// Policy keeps one for each VM and updates it with each report of the VM's workers.
//
// Units: nanoseconds since boot. Thread-safety: one thread at a time.
#pragma once

#include <cstdint>

#include "host/scheduler/gpu_time.h"

namespace host::scheduler {

// The reports of a VM's workers about one GPU, added up.
struct Demand {
  std::uint64_t submitted = 0;  // calls that gave the GPU work
  std::uint64_t waits = 0;      // calls that waited for the GPU, and have returned
  bool wants = false;           // some submission is not covered by a returned wait
  bool calls = false;           // some call is in the driver, whatever it does
};

class SubmissionPattern {
 public:
  // True if the VM may share a lease with others that fill gaps.
  bool fills_gaps() const { return fills_gaps_; }
  // Judges again once there are enough waits, or a long time without any. `wants_for`: how long the VM has wanted the
  // GPU. A VM of the latency class never fills gaps.
  void update(const Demand& demand, Time wants_for, bool latency);

 private:
  bool fills_gaps_ = true;
  std::uint64_t judged_submitted_ = 0, judged_waits_ = 0;  // at the last judgement
};

}  // namespace host::scheduler
