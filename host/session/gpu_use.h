// What a session tells the scheduler of its use of GPUs (ring/ops/gpu_use.h): each submission, and how many of them a returned
// wait covers. A submission costs one addition and one look.
//
// A wait for one stream is taken for a wait for all: a program of several streams may seem to be done early, and wants the
// GPU again with its next submission.
//
// Thread-safety: each channel's thread calls with its own number.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "ring/ops/gpu_use.h"

namespace host {

class Session;

// The pages as the worker has them; null: nobody schedules this worker.
struct GpuUsePages {
  const ring::OrdersPage* orders = nullptr;
  ring::UsePage* use = nullptr;
  int bell_fd = -1;           // an eventfd that wakes the scheduler
  std::uint32_t devices = 0;  // how many GPUs the VM sees
};

class GpuUse {
 public:
  GpuUse(Session& session, GpuUsePages pages) : session_(session), pages_(pages) {}
  GpuUse(const GpuUse&) = delete;
  GpuUse& operator=(const GpuUse&) = delete;

  bool is_scheduled() const { return pages_.use != nullptr; }

  // Before a call that submits, in the context with this number. Precondition of all three: is_scheduled().
  void submitted(std::uint32_t channel, unsigned context);
  // Before a call that waits: what its return covers.
  std::uint64_t submissions(unsigned context) const;
  // It has returned.
  void waited(unsigned context, std::uint64_t covered);

 private:
  std::uint32_t device_of(unsigned context) const;  // pages_.devices or more: of none
  void ring_scheduler(std::uint32_t device, std::uint32_t wake);

  Session& session_;
  const GpuUsePages pages_;
  std::array<std::atomic<std::uint32_t>, ring::max_devices> rung_{};  // the newest number that was rung for
};

}  // namespace host
