// Reports a session's GPU use to the scheduler (ring/ops/gpu_use.h): each submission, and the submissions that a
// returned wait covers. A submission costs one addition and one load.
//
// A wait for one stream counts as a wait for all. A program with several streams may therefore seem done too early; the
// program's next submission requests the GPU again.
//
// Thread-safety: each channel's thread passes its own number.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "ring/ops/gpu_use.h"

namespace host {

class Session;

// The mapped pages of a worker's GPU use; null: the worker is not scheduled.
struct GpuUsePages {
  const ring::OrdersPage* orders = nullptr;
  ring::UsePage* use = nullptr;
  int scheduler_doorbell_fd = -1;  // an eventfd that wakes the scheduler
  std::uint32_t devices = 0;       // the number of GPUs that the VM sees
};

class GpuUse {
 public:
  GpuUse(Session& session, GpuUsePages pages) : session_(session), pages_(pages) {}
  GpuUse(const GpuUse&) = delete;
  GpuUse& operator=(const GpuUse&) = delete;

  bool is_scheduled() const { return pages_.use != nullptr; }

  // Must be called before a call that submits work in this context. Precondition of this and the next two functions:
  // is_scheduled().
  void submitted(std::uint32_t channel, unsigned context);
  // Must be called before a call that waits. Returns the number of submissions that the wait will cover.
  std::uint64_t submissions(unsigned context) const;
  // Must be called when the wait has returned.
  void waited(unsigned context, std::uint64_t covered);

 private:
  std::uint32_t device_of(unsigned context) const;  // pages_.devices or more: no GPU
  void ring_scheduler(std::uint32_t device, std::uint32_t wake);

  Session& session_;
  const GpuUsePages pages_;
  std::array<std::atomic<std::uint32_t>, ring::max_devices> signalled_{};  // the newest wake number that was signalled
};

}  // namespace host
