// Simulates time slices of a GPU shared by several processes, for tests. Kernels of one process run at a time, with a
// context switch between processes as in a real driver (docs/design/048-gpu-time.md). The shared fields lie in the
// usage file (usage_file.h), whose creator sets the durations.
//
// A process keeps the GPU until it is idle for a moment, or its slice ends and another process waits. Slices end by
// time, so a killed process blocks nothing. The end of a slice interrupts no kernel, so kernels of two processes may
// overlap. A process that the broker switched off starts none.
#pragma once

#include <atomic>
#include <cstdint>

#include "host/simgpu/api/device/usage_file.h"

namespace simgpu {

class TimeSlices {
 public:
  // Call before any kernel. If a switch takes no time, the process has the GPU to itself. While `off` is not 0, no
  // kernel begins.
  void share(DeviceTime& words, const std::atomic<std::uint32_t>& off) { words_ = &words, off_ = &off; }

  // True if a test has removed the GPU (usage_file.h).
  bool is_lost() const { return words_ != nullptr && words_->lost.load(std::memory_order_relaxed) != 0; }

  // Enclose each kernel. begin() waits for the GPU. Thread-safe.
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
