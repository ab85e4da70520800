// A session's turns on the GPUs: what its channels do before they give a GPU work, and the keepers that give turns back.
// The scheduler is the broker's (host/turns/); ring/turns.h has the pages, ring/turn_gate.h the gate's orderings.
//
// While one VM uses a GPU, every grant is Open, and a submission costs a flag, a fence and a look. In a turn, a channel
// also waits for its own work now and then, outside of the gate, so that no more than `most_us` of it is under way when
// the turn ends: the GPU then idles for some 10 us, where marks in the stream would have to be made for every stream that
// a program uses. A kernel may spin until its own process has submitted more, so that wait has a bound.
//
// A keeper is a thread for each GPU. It sleeps while nobody takes turns. It ends a turn early when the session has been
// quiet for a while: how long pays is learnt from the pauses that this session makes (ring/turn_patience.h). Under a
// watched grant it looks each millisecond whether some channel is in a call that submits or waits, and adds to `busy_ns`.
// It asks the driver nothing for that: a question for a whole context returns only when its work is done, and keeps
// objects from ending until then. A stream that waits for a value in memory may do so for ever, so the keeper does not wait
// for that: it says that its session is held up, and gives the turn back when the value is there (docs/design/043-value-waits.md).
// Under a shallow grant a channel keeps its queue short (ShortQueue), since the gate may
// close soon.
//
// Thread-safety: each channel's thread calls with its own number; start() and stop() belong to the session's owner.
#pragma once

#include <time.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "host/session/batch.h"
#include "host/session/value_waits.h"
#include "ring/layout.h"
#include "ring/turn_gate.h"
#include "ring/turn_patience.h"
#include "ring/turns.h"
#include "ring/wire/record.h"

namespace host {

class Session;

// The pages of ring/turns.h as the worker has them; null: nobody schedules this worker.
struct TurnPages {
  const ring::GrantPage* grants = nullptr;
  ring::RequestPage* requests = nullptr;
  int bell_fd = -1;           // an eventfd that wakes the scheduler
  std::uint32_t devices = 0;  // how many GPUs the VM sees
  // How long a channel waits for a full batch: as long as the broker waits for the end of a turn, since then the driver
  // slices.
  std::chrono::milliseconds longest_drain{20};
  bool keeper_naps = false;  // the keepers sleep between two looks (ring/turn_naps.h)
};

// How many submissions a channel has queued at most while its VM may be held back soon: two halves. When the second is
// begun the channel asks for the end of the first, and it waits for that only once the second is full, too. So the GPU
// always has some work of it.
class ShortQueue {
 public:
  static constexpr std::chrono::milliseconds wanted{10};  // of the time that a half takes, beside others' work

  bool is_asked() const { return asked_ != 0; }
  bool should_ask() const { return asked_ == 0 && count_ >= half_; }
  bool is_full() const { return count_ >= 2 * half_; }
  void submitted() { ++count_; }
  void asked() { asked_ = count_; }
  // The half that was asked about is done. It took this time, if the channel `waited` for it; else nobody knows how long.
  void done(std::chrono::nanoseconds took, bool waited);
  // Nobody knows how much is queued, so it is full.
  void forget() { count_ = 2 * half_, asked_ = 0, is_known_ = false; }

 private:
  static constexpr std::uint32_t most = 2048;
  std::uint32_t half_ = 8, count_ = 2 * half_, asked_ = 0;
  bool is_known_ = false;
};

class Turns {
 public:
  Turns(Session& session, TurnPages pages) : session_(session), pages_(pages) {}
  ~Turns() { stop(); }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // Starts the keepers; stop() ends them, and lets everybody through the gates.
  void start();
  void stop();

  // Around a call that submits, in the context with this number. enter() waits for a turn if need be; it holds no lock.
  // True: it has waited. `kind_of_work()` gives Batch's kind; nobody asks but in a turn.
  template <class KindOfWork>
  bool enter(std::uint32_t channel, unsigned context, const KindOfWork& kind_of_work) {
    if (!are_taken()) return false;
    const Passed passed = pass_gate(channel, context);
    if (passed.in_turn) note_work(channel, kind_of_work());
    return passed.waited;
  }
  void leave(std::uint32_t channel) {
    if (inside_[channel].device != nullptr) leave_gate(channel, inside_[channel]);
  }
  // Around a large copy, which does not keep others from the GPU. False: it needs a turn all the same, by enter().
  bool begin_copy(std::uint32_t channel, unsigned context) { return !are_taken() || let_in_beside(channel, context); }
  void end_copy(std::uint32_t channel) {
    if (Device* const device = std::exchange(copies_at_[channel], nullptr))
      device->copies.fetch_sub(1, std::memory_order_release);  // B of ring/turn_gate.h
  }
  // Whether the scheduler has ended with its broker (docs/design/041-workers-answer.md): calls then pass the gates that it has
  // left shut, until the next one gives grants, or until this is called with false. The bell thread's.
  void left_alone(bool yes);
  // Whether somebody schedules this session.
  bool are_taken() const { return pages_.grants != nullptr; }
  // Before and after a call that the guest waits for and that waits for the GPU, or gives it work; it took so long.
  // Precondition: are_taken().
  void begin_wait(std::uint32_t channel, unsigned context);
  void waited(std::uint32_t channel, unsigned context, std::chrono::nanoseconds took);

 private:
  using Clock = std::chrono::steady_clock;

  struct Device {
    Device(Turns& turns, std::uint32_t number);
    // After the submission: noted before, it might be taken for one that the keeper is just waiting for, and forgotten.
    void note_use(unsigned context) {
      if (!context_used[context].load(std::memory_order_relaxed))
        context_used[context].store(true, std::memory_order_relaxed);
    }
    void count_busy(Clock::duration time) {
      request.busy_ns.fetch_add(static_cast<std::uint64_t>(time.count()), std::memory_order_relaxed);
    }
    bool drain_is_asked() const {
      return drains_asked.load(std::memory_order_relaxed) != drains_done.load(std::memory_order_relaxed);
    }
    const ring::DeviceGrant& grant;
    ring::DeviceRequest& request;
    ring::TurnGate<ring::max_channels> gate;
    std::atomic<std::uint32_t> told{~0u};  // the number of the newest grant that was rung for
    std::array<std::atomic<bool>, ring::max_contexts> context_used = {};  // since the keeper last waited for it
    // How often channels have asked the keeper to wait for all work, and which of these it has waited for. Edge W, asked
    // and done: what was noted in context_used before is waited for; after that nothing of it is under way.
    std::atomic<std::uint64_t> drains_asked{0}, drains_done{0};
    std::atomic<std::uint32_t> copies{0};  // that pass no gate, under way now
    std::atomic<bool> drains{
        false};  // under a watched grant: the keeper waits; a channel that waits for room counts meanwhile
    ring::TurnPatience patience;  // the keeper's
    std::thread keeper;
  };

  struct Queue {  // a channel's, while it is to be short
    ShortQueue queue;
    std::uint64_t asked = 0;  // the drain for its first half
    Clock::time_point asked_at;
  };

  struct Inside {  // where a channel submits
    Device* device = nullptr;
    unsigned context = 0;
  };

  struct Passed {  // how a channel came through the gate
    bool waited = false, in_turn = false;
  };

  Passed pass_gate(std::uint32_t channel, unsigned context);
  Passed go_on(Inside at, std::uint32_t channel, bool waits, std::uint32_t word);
  void come_in(Inside at, std::uint32_t channel);
  void note_work(std::uint32_t channel, std::uint32_t kind);
  void leave_gate(std::uint32_t channel, const Inside& inside);
  bool let_in_beside(std::uint32_t channel, unsigned context);
  void wait_for_turn(Device& device, std::uint32_t channel, ring::Grant& under);
  bool is_ending() const;
  void bound_work(Device& device, std::uint32_t channel, ring::Grant& under);
  void keep_short(Device& device, std::uint32_t channel, ring::Grant& under);
  bool await_half(Device& device, std::uint32_t channel, ring::Grant under);
  std::uint64_t ask_drain(Device& device) const;
  static void wake_all(Device& device);
  bool is_over(Device& device, ring::Grant grant, Clock::time_point latest) const;
  bool await_drain(Device& device, ring::Grant turn) const;
  void ring_scheduler() const;
  Device* device_of(unsigned context);

  void keep(Device& device);
  void hold(Device& device, ring::Grant turn);
  void watch(Device& device, ring::Grant open);
  void drain_and_count(Device& device);
  bool is_busy(const Device& device) const;
  bool quiet_for(std::chrono::microseconds time, Device& device, ring::Grant turn);
  void pause_before_look(Device& device, ring::Grant grant, std::chrono::nanoseconds time);
  void hold_beside_waits(Device& device, ring::Grant turn);
  void answer_end(Device& device, ring::Grant closed);
  bool await_calls(Device& device, ring::Grant closed);
  void give_back_when_done(Device& device, ring::Grant grant);
  static Clock::time_point others_wait_until(const Device& device);
  bool drain(Device& device, Clock::time_point others_until, bool all_contexts = false);
  bool await_work(Device& device, unsigned context, Clock::time_point others_until);
  bool may_be_held_up(const Device& device) const;
  bool is_held_up(Device& device, bool surely);
  ValueWaits::Found look(unsigned context);
  void sleep_on(Device& device, ring::Grant grant, const timespec& most);

  Session& session_;
  const TurnPages pages_;
  std::atomic<bool> stopping_{false};
  std::array<std::unique_ptr<Device>, ring::max_devices> devices_;
  std::array<Inside, ring::max_channels> inside_{};  // each its channel's
  std::array<Device*, ring::max_channels> copies_at_{};
  std::array<Batch, ring::max_channels> batches_;
  std::array<Queue, ring::max_channels> queues_;
  std::array<std::atomic<const Device*>, ring::max_channels> waits_at_ = {};
};

}  // namespace host
