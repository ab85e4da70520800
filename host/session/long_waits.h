// Limits the processor time of threads that wait in the driver.
//
// The driver spins while it waits for the GPU. If a guest runs an endless kernel, each channel's thread could spin
// without end, in a wait, copy, free, or launch into a full queue. Every channel's thread therefore has a timer on its
// own processor time. The timer's signal handler checks every few milliseconds whether the thread is still in the same
// call. After `patience` the handler pauses the thread, each time for an eighth of the call's time so far, at most 50
// ms. One channel of a session is never paused, so a program that waits in one thread at a time loses no time.
//
// While a VM's channels are disabled (docs/design/048-gpu-time.md) the GPU completes none of its calls. The handler
// then makes each thread sleep at once until the channels are enabled, unless a compiler may run in the call. Spinning
// threads would take processors from the VM that has the GPU.
//
// A sleeping thread uses no processor time, so its timer never fires. The watch costs three relaxed stores per call.
//
// Measured on an H200, driver 580.159.04: CU_CTX_SCHED_BLOCKING_SYNC does not stop a thread that already spins. A
// launch into a full queue, and a wait for an event without CU_EVENT_BLOCKING_SYNC, spin despite it. Flags alone are
// therefore no limit.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "host/session/gpu_use.h"
#include "ring/layout/layout.h"

namespace host {

// State shared by a session's channels.
class LongWaits {
 public:
  // `patience_ms`: processor time in one call before pauses begin; 0: no pauses. `pages`: the scheduler reads the steps
  // in these pages, and writes orders into them when it disables the channels. Without pages this object has its own
  // steps, and channels stay enabled.
  explicit LongWaits(std::uint32_t patience_ms, const GpuUsePages& pages = {})
      : patience_ms_(patience_ms), steps_(pages.use != nullptr ? pages.use->steps : own_steps_) {
    if (pages.orders != nullptr) orders_ = {pages.orders->device, pages.devices};
  }

  std::uint32_t patience_ms() const { return patience_ms_; }
  // Returns whether a thread may ever have to sleep.
  bool watches() const { return patience_ms_ != 0 || !orders_.empty(); }
  // Returns whether the VM's channels are disabled on all of the VM's GPUs. Safe in a signal handler, like
  // sleep_while_off().
  bool is_off() const;
  // Returns when channels are enabled, or after 50 ms.
  void sleep_while_off();
  // Returns whether this channel may continue its present call without a pause, because no other channel has this
  // right. Safe in a signal handler.
  bool may_go_on(std::uint32_t channel);
  // The number of pauses, and the number of sleeps while channels were disabled.
  std::uint64_t pauses() const { return pauses_.load(std::memory_order_relaxed); }
  std::uint64_t sleeps() const { return sleeps_.load(std::memory_order_relaxed); }

 private:
  friend class WaitWatch;
  static constexpr std::uint64_t nobody = ~std::uint64_t{0};

  const std::uint32_t patience_ms_;
  // For each channel, the number of begins and ends of calls: odd inside a call. The counter orders no memory.
  std::atomic<std::uint64_t>* const steps_;
  std::atomic<std::uint64_t> own_steps_[ring::max_channels] = {};
  std::span<const ring::DeviceOrders> orders_;
  std::atomic<std::uint64_t> pauses_{0}, sleeps_{0};
  // The step of the channel that may continue; the channel is in the lowest bits.
  std::atomic<std::uint64_t> goes_on_{nobody};
};

// The timer of one channel's thread. This thread creates, uses and destroys the timer.
class WaitWatch {
 public:
  WaitWatch(LongWaits& waits, std::uint32_t channel);
  ~WaitWatch();
  WaitWatch(const WaitWatch&) = delete;
  WaitWatch& operator=(const WaitWatch&) = delete;

  // begin() and end() must be called around a call that may wait. `works`: the call may also compute for a long time,
  // as a compiler does, so its patience is much longer.
  void begin(bool works) {
    works_.store(works, std::memory_order_relaxed);
    step();
  }
  void end() { step(); }

 private:
  void step() {
    auto& steps = waits_.steps_[channel_];
    steps.store(steps.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void set_timer();
  static void set_handler();
  void on_tick();  // called by the signal handler

  LongWaits& waits_;
  const std::uint32_t channel_;
  std::atomic<bool> works_{false};
  std::optional<timer_t> timer_;
  // Only the signal handler uses these members.
  std::uint64_t seen_ = 0;
  std::uint32_t ticks_ = 0;
  std::int64_t begun_ms_ = 0;  // the time when the handler first found the call
};

}  // namespace host
