// Limits the processor time of threads that wait in the driver.
//
// The driver spins while it waits for the GPU. Behind an endless kernel, each channel's thread could spin as long as
// the guest likes. Its calls would never return: waits, copies, frees, launches into a full queue. Every channel's
// thread therefore has a timer on its own processor time. The timer's signal handler checks every few milliseconds
// whether the thread is still in the same call. After `patience` the handler pauses the thread, each time for an eighth
// of the call's time so far, at most 50 ms. One channel of a session is never paused, so a program that waits in one
// thread at a time waits as it would natively.
//
// While a VM's channels are disabled (docs/design/048-gpu-time.md) the GPU completes none of its calls. The handler
// then makes each of its threads sleep until they are enabled, without patience, unless a compiler may run in the call.
// Spinning threads would take processors from the VM that has the GPU.
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
  // `patience_ms`: processor time in one call before pauses begin; 0: never. `pages`: the scheduler reads their steps,
  // and writes orders when it disables the channels. Without pages this object has its own steps, and channels stay
  // enabled.
  explicit LongWaits(std::uint32_t patience_ms, const GpuUsePages& pages = {})
      : patience_ms_(patience_ms), steps_(pages.use != nullptr ? pages.use->steps : own_steps_) {
    if (pages.orders != nullptr) orders_ = {pages.orders->device, pages.devices};
  }

  std::uint32_t patience_ms() const { return patience_ms_; }
  // True if a thread may ever have to sleep.
  bool watches() const { return patience_ms_ != 0 || !orders_.empty(); }
  // True if the VM's channels are disabled on all of its GPUs. Safe in a signal handler, like the next function.
  bool is_off() const;
  // Returns when channels are enabled, or after 50 ms.
  void sleep_while_off();
  // True if this channel may go on without a pause in its present call, because no other channel does. Safe in a signal
  // handler.
  bool may_go_on(std::uint32_t channel);
  // Numbers of pauses, and of sleeps while channels were disabled.
  std::uint64_t pauses() const { return pauses_.load(std::memory_order_relaxed); }
  std::uint64_t sleeps() const { return sleeps_.load(std::memory_order_relaxed); }

 private:
  friend class WaitWatch;
  static constexpr std::uint64_t nobody = ~std::uint64_t{0};

  const std::uint32_t patience_ms_;
  // Per channel, the begins and ends of calls: odd inside a call. It orders no memory.
  std::atomic<std::uint64_t>* const steps_;
  std::atomic<std::uint64_t> own_steps_[ring::max_channels] = {};
  std::span<const ring::DeviceOrders> orders_;
  std::atomic<std::uint64_t> pauses_{0}, sleeps_{0};
  std::atomic<std::uint64_t> goes_on_{nobody};  // the step; the channel is in the lowest bits
};

// The timer of one channel's thread, which creates, uses and destroys it.
class WaitWatch {
 public:
  WaitWatch(LongWaits& waits, std::uint32_t channel);
  ~WaitWatch();
  WaitWatch(const WaitWatch&) = delete;
  WaitWatch& operator=(const WaitWatch&) = delete;

  // Call begin() and end() around a call that may wait. `works`: the call may also compute for long, as a compiler
  // does, so its patience is much longer.
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
  void on_tick();  // in the signal handler

  LongWaits& waits_;
  const std::uint32_t channel_;
  std::atomic<bool> works_{false};
  std::optional<timer_t> timer_;
  // Only the handler uses these.
  std::uint64_t seen_ = 0;
  std::uint32_t ticks_ = 0;
  std::int64_t begun_ms_ = 0;  // when the call was first found
};

}  // namespace host
