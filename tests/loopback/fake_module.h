// Plays the guest's kernel module for a guest and a worker in one process. It changes the state of the only slot.
// Threads sleep in this module until the slot's interrupt, an eventfd that the worker writes.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

#include "guest/region/module.h"
#include "guest/session/slot/slot_step.h"
#include "ring/view.h"
#include "tests/other_side.h"

namespace loopback {

class FakeModule final : public guest::Module {
 public:
  FakeModule(ring::Shared<ring::SlotEntry> entry, ring::SlotView slot)
      : entry_(entry), slot_(slot), kernel_([this] { take_interrupts(); }) {}
  ~FakeModule() override {
    ending_ = true;
    raise();
    kernel_.join();
    close(interrupt_);
  }
  FakeModule(const FakeModule&) = delete;
  FakeModule& operator=(const FakeModule&) = delete;

  int interrupt_fd() const { return interrupt_; }
  // Removes the device. No thread may access the device afterwards.
  void unplug() {
    unplugged_ = true;
    raise();
  }
  bool unplugged() const { return unplugged_; }
  // Counters of sleeps, of sleeps that an interrupt ended, and of sleeping threads. A thread counts as asleep once it
  // has seen its word unchanged; a later change needs the interrupt.
  std::uint32_t slept() const { return slept_; }
  std::uint32_t woken() const { return woken_; }
  std::uint32_t asleep() const {
    const std::lock_guard lock(mutex_);
    return asleep_;
  }
  // After this call only an interrupt ends a sleep, so a test that counts interrupts does not depend on time.
  void ignore_time_limits() { ignores_limits_ = true; }
  void refuse_sleeps() { refuses_ = true; }

  std::optional<Claim> claim(const char*) override {
    const auto claimed = guest::claim(entry_, {.boot = 1, .pid_space = 1, .start_time = 1, .pid = 1, .peer = 70});
    return claimed ? std::optional(Claim{0, *claimed}) : std::nullopt;
  }
  void release() override {
    ++released_;
    guest::release(entry_, ring::SlotWord::of(entry_[&ring::SlotEntry::state].load()));
  }
  std::uint32_t released() const { return released_; }
  bool wakes(std::uint32_t, std::uint32_t guest_vectors) const override { return guest_vectors == 1; }
  Slept sleep(std::uint64_t offset, std::uint32_t expected, std::uint64_t nanoseconds) override {
    if (refuses_) return Slept::Refused;
    std::unique_lock lock(mutex_);
    const auto word = other_side::shared(other_side::at<std::uint32_t>(slot_.base(), offset));
    ++slept_;
    ++asleep_;
    const std::uint64_t before = interrupts_;
    const auto changed = [&] { return unplugged_ || word.load() != expected; };
    bool came = changed();
    if (!came && ignores_limits_)
      interrupted_.wait(lock, [&] { return came = interrupts_ != before && changed(); });
    else if (!came)
      came = interrupted_.wait_for(lock, std::chrono::nanoseconds(nanoseconds), changed);
    --asleep_;
    if (unplugged_) return Slept::Gone;
    if (came && interrupts_ != before) ++woken_;  // otherwise the time limit ended the sleep
    return Slept::Ended;
  }

 private:
  void raise() const { eventfd_write(interrupt_, 1); }
  void take_interrupts() {
    for (eventfd_t count = 0; !ending_ && eventfd_read(interrupt_, &count) == 0;) {
      const std::lock_guard lock(mutex_);
      ++interrupts_;
      interrupted_.notify_all();
    }
  }

  const ring::Shared<ring::SlotEntry> entry_;
  const ring::SlotView slot_;
  const int interrupt_ = eventfd(0, EFD_CLOEXEC);
  std::atomic<bool> ending_{false}, unplugged_{false}, refuses_{false}, ignores_limits_{false};
  std::atomic<std::uint32_t> slept_{0}, woken_{0}, released_{0};
  mutable std::mutex mutex_;
  std::uint32_t asleep_ = 0;
  std::condition_variable interrupted_;
  std::uint64_t interrupts_ = 0;
  std::thread kernel_;  // last, since its thread uses the members above
};

}  // namespace loopback
