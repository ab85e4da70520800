// A bound on the processor time of threads that wait in the driver.
//
// The driver spins while it waits for the GPU. Behind an endless kernel each channel's thread could keep a processor
// busy for as long as the guest likes, in calls that never return: waits, copies, frees, launches into a full queue. So
// every channel's thread has a timer on its own processor time. After every few milliseconds of that time the timer's
// signal handler looks whether the thread is still in the same call. From `patience` on the handler pauses the thread,
// for an eighth of the call's time so far, and for 50 ms at most. One channel of a session goes on without pauses, so a
// program that waits in one thread at a time waits as it would natively.
//
// While a VM's channels are off (docs/design/048-gpu-time.md) the GPU ends none of its calls. So the handler has each of its
// threads sleep until the channels are on, whatever the patience, unless a compiler may run in the call. Threads that spin
// would take the processors from the VM that has the GPU.
//
// A sleeping thread takes no processor time, so its timer never fires. The watch costs a call three relaxed stores.
//
// Measured on an H200, driver 580.159.04: with CU_CTX_SCHED_BLOCKING_SYNC in force a thread that spins already goes on
// spinning, and a launch into a full queue and a wait for an event without CU_EVENT_BLOCKING_SYNC spin all the same.
// So flags alone bound nothing.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "host/session/gpu_use.h"
#include "ring/layout/layout.h"

namespace host {

// The state that a session's channels share.
class LongWaits {
 public:
  // `patience_ms`: processor time in one call before the pauses begin; 0: no bound.
  // `pages`: the scheduler reads their steps, and writes into their orders when the channels are off. Without pages this object
  // keeps steps of its own, and the channels are always on.
  explicit LongWaits(std::uint32_t patience_ms, const GpuUsePages& pages = {})
      : patience_ms_(patience_ms), steps_(pages.use != nullptr ? pages.use->steps : own_steps_) {
    if (pages.orders != nullptr) orders_ = {pages.orders->device, pages.devices};
  }

  std::uint32_t patience_ms() const { return patience_ms_; }
  // Whether a thread may ever have to sleep.
  bool watches() const { return patience_ms_ != 0 || !orders_.empty(); }
  // Whether the VM is off on all of its GPUs. Safe in a signal handler, as the next one.
  bool is_off() const;
  // Returns when it is on, or after 50 ms.
  void sleep_while_off();
  // True if this channel may go on without a pause in its present call, because no other of the session does. Safe in a
  // signal handler.
  bool may_go_on(std::uint32_t channel);
  // The numbers of pauses so far, and of sleeps while off.
  std::uint64_t pauses() const { return pauses_.load(std::memory_order_relaxed); }
  std::uint64_t sleeps() const { return sleeps_.load(std::memory_order_relaxed); }

 private:
  friend class WaitWatch;
  static constexpr std::uint64_t nobody = ~std::uint64_t{0};

  const std::uint32_t patience_ms_;
  // The number of begins and ends of calls of a channel's thread: odd inside a call. It orders no memory.
  std::atomic<std::uint64_t>* const steps_;
  std::atomic<std::uint64_t> own_steps_[ring::max_channels] = {};
  std::span<const ring::DeviceOrders> orders_;
  std::atomic<std::uint64_t> pauses_{0}, sleeps_{0};
  std::atomic<std::uint64_t> goes_on_{nobody};  // the step and, in the lowest bits, the channel
};

// The timer of one channel's thread: made, used and ended by that thread.
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
