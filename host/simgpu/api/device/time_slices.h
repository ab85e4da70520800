// Simulates, for tests, the time slices of a GPU that several processes share. Kernels of only one process run at a
// time, with a context switch between processes as in NVIDIA's driver (docs/design/048-gpu-time.md). The processes
// share the state in the usage file (usage_file.h), whose creator sets the durations.
//
// A process keeps the GPU until it has been idle for a moment, or until its slice ends while another process waits.
// Slices end by time, so a killed process blocks no other process. The end of a slice does not interrupt a kernel, so
// kernels of two processes may overlap. If the broker switches a process off, the process starts no kernel.
#pragma once

#include <atomic>
#include <cstdint>

#include "host/simgpu/api/device/usage_file.h"

namespace simgpu {

class TimeSlices {
 public:
  // Call this function before the first kernel. If the time of a context switch is 0, time slicing is off and kernels
  // never wait for another process. While `off` is not 0, no kernel begins.
  void share(DeviceTime& words, const std::atomic<std::uint32_t>& off) { words_ = &words, off_ = &off; }

  // Returns true if a test has removed the GPU (usage_file.h).
  bool is_lost() const { return words_ != nullptr && words_->lost.load(std::memory_order_relaxed) != 0; }

  // Call begin() before and end() after each kernel. begin() waits for the GPU. Both are thread-safe.
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
  std::atomic<int> running_{0};  // kernels of this process that are running
};

}  // namespace simgpu
