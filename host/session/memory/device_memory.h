// A session's account of its GPUs' memory: what it has taken of each device, held against what its broker has lent it
// (docs/design/029-memory-quotas.md).
//
// It takes only checked values. Memory is counted before the driver is asked for it, and until the driver has it back,
// so the account is never below what the session holds by the ways that are counted. Within what is lent this costs a
// lock that no other thread wants, and no system call. Beyond it the calling thread asks the lender, one thread at a
// time, and waits for the answer; the account's lock is not held meanwhile, so that collect() answers at once.
//
// Thread-safety: any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "ring/layout/layout.h"

namespace host {

// Who lends a worker device memory: its broker (broker_line.h), or a test.
class Lender {
 public:
  virtual ~Lender() = default;
  // At least `bytes` more of a device, or 0.
  virtual std::uint64_t borrow(unsigned device, std::uint64_t bytes) = 0;
  struct Room {
    std::uint64_t free, total;
  };
  // What could still be borrowed, and the bound of the session's VM. Nothing: it has none.
  virtual std::optional<Room> room(unsigned device) = 0;
};

class DeviceMemory;

// A part of the account for as long as this object lives. An empty one holds nothing.
class Charge {
 public:
  Charge() = default;
  ~Charge() { let_go(); }
  Charge(Charge&& other) noexcept { *this = std::move(other); }
  Charge& operator=(Charge&& other) noexcept {
    let_go();
    memory_ = std::exchange(other.memory_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    device_ = other.device_;
    return *this;
  }

  // False: neither the lease nor the lender has so much. Preconditions: this charge is empty.
  bool take(DeviceMemory& memory, unsigned device, std::uint64_t bytes);
  void let_go() {
    if (memory_ != nullptr) give_back();  // each record has a charge, and few have taken anything
  }
  // The bytes are somebody else's to give back from now on.
  std::uint64_t hand_over() {
    memory_ = nullptr;
    return std::exchange(bytes_, 0);
  }
  std::uint64_t bytes() const { return bytes_; }
  unsigned device() const { return device_; }

 private:
  void give_back();

  DeviceMemory* memory_ = nullptr;
  std::uint64_t bytes_ = 0;
  unsigned device_ = 0;
};

class DeviceMemory {
 public:
  // `lender`: null where nothing bounds the session. `published`: kept at what is taken of each device.
  DeviceMemory(Lender* lender, std::span<std::atomic<std::uint64_t>, ring::max_devices> published)
      : lender_(lender), published_(published) {}
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Called, in a thread that finds no room, before it gives up: makes the session give back what it can do without.
  // Set it before the first record.
  void when_full(std::function<void(unsigned device)> make_room) { make_room_ = std::move(make_room); }

  // False: there is not so much, and nothing was taken.
  bool take(unsigned device, std::uint64_t bytes);
  // Takes what the driver has given already, whether it is lent or not.
  void take_anyway(unsigned device, std::uint64_t bytes);
  // Preconditions: they were taken.
  void give_back(unsigned device, std::uint64_t bytes);

  // Gives up what is lent and not taken. Returns how much that was, which is the lender's again.
  std::uint64_t collect(unsigned device);
  // The bound of the session's VM, and what the session can still take. Nothing: it has no bound.
  std::optional<Lender::Room> room(unsigned device);
  std::uint64_t taken(unsigned device) const;

 private:
  struct Account {
    mutable std::mutex mutex;
    std::uint64_t taken = 0, lent = 0;  // more may be taken than lent: while a thread asks, and by take_anyway()
  };
  // Under the account's mutex.
  bool fits(const Account& a, std::uint64_t bytes) const {
    return lender_ == nullptr || (a.lent >= a.taken && bytes <= a.lent - a.taken);
  }
  void change(unsigned device, Account& a, std::uint64_t taken) {
    a.taken = taken;
    published_[device].store(taken, std::memory_order_relaxed);
  }
  bool take_lent(unsigned device, std::uint64_t bytes);
  bool borrow(unsigned device, std::uint64_t bytes);

  Lender* const lender_;
  const std::span<std::atomic<std::uint64_t>, ring::max_devices> published_;
  std::function<void(unsigned)> make_room_;
  std::mutex asking_;  // taken before an account's
  std::array<Account, ring::max_devices> accounts_;
};

}  // namespace host
