// The time of a simulated GPU that several processes share, for tests: kernels of one process at a time, with a change
// of context between two processes and slices as a real driver has them (docs/design/048-gpu-time.md). The shared words are
// those of usage_file.h, whose maker also says how long a change and a slice take.
//
// A process has the GPU until it is idle for a moment, or its slice is over and another one wants it. Nothing is held
// that a killed process could keep: its slice ends by time. When a slice ends the kernels that run are not interrupted,
// so two processes' may run side by side for as long as these take. A process that the broker has switched off begins none.
#pragma once

#include <atomic>
#include <cstdint>

#include "host/simgpu/api/device/usage_file.h"

namespace simgpu {

class TimeSlices {
 public:
  // Before any kernel. Where a change takes no time, the process has the GPU for itself. `off`: while it is not 0, none
  // begins.
  void share(DeviceTime& words, const std::atomic<std::uint32_t>& off) { words_ = &words, off_ = &off; }

  // Whether a test has made the GPU disappear (usage_file.h).
  bool is_lost() const { return words_ != nullptr && words_->lost.load(std::memory_order_relaxed) != 0; }

  // Around a kernel. begin() waits until the GPU is this process's. Threads: any.
  void begin() {
    if (words_ != nullptr) wait_for_gpu();
  }
  void end() {
    if (words_ != nullptr) let_go();
  }

 private:
  void wait_for_gpu();
  bool try_to_begin(std::int64_t now);
  void let_go();

  DeviceTime* words_ = nullptr;
  const std::atomic<std::uint32_t>* off_ = nullptr;
  std::atomic<int> running_{0};  // kernels of this process
};

}  // namespace simgpu
