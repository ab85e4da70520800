// A session's account of its GPU memory: the memory taken of each device, compared with the broker's grant
// (docs/design/029-memory-quotas.md).
//
// Arguments must be checked values. Memory is counted before the driver allocates it and until the driver has freed it,
// so the account is never below the counted use. Within the grant an allocation costs an uncontended lock and no system
// call. Beyond the grant, the thread asks the lender and waits for the answer; one thread at a time asks. The account
// is not locked during the wait, so that collect() returns at once.
//
// Thread-safety: any thread. Lock order: asking_; a pool's mutex, since make_room_ trims pools; an account's mutex.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "ring/base/mutex.h"
#include "ring/layout/layout.h"

namespace host {

// Grants device memory to a worker. The worker's broker does this (control_channel.h), or a test.
class MemoryReserver {
 public:
  virtual ~MemoryReserver() = default;
  // Grants at least `bytes` more of a device's memory, or 0.
  virtual std::uint64_t reserve(unsigned device, std::uint64_t bytes) = 0;
  struct Headroom {
    std::uint64_t free, total;
  };
  // Returns the amount that could still be reserved, and the VM's limit. Returns nothing if the VM has no limit.
  virtual std::optional<Headroom> headroom(unsigned device) = 0;
};

class DeviceMemory;

// A part of the account, which is given back when the Charge is destroyed. An empty charge has no memory.
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

  // Returns false if neither the grant nor the lender has enough memory. Precondition: this charge is empty.
  bool take(DeviceMemory& memory, unsigned device, std::uint64_t bytes);
  void let_go() {
    if (memory_ != nullptr) give_back();  // inline test, because each record has a charge, but few charges have memory
  }
  // The caller becomes responsible for giving the bytes back.
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
  // `reserver`: null if nothing limits the session. `published`: always has the bytes taken of each device.
  DeviceMemory(MemoryReserver* reserver, std::span<std::atomic<std::uint64_t>, ring::max_devices> published)
      : reserver_(reserver), published_(published) {}
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Sets a function that makes the session free all memory that it does not need. A thread that finds no memory calls
  // this function before it gives up. Must be set before the first record.
  void when_full(std::function<void(unsigned device)> make_room) { make_room_ = std::move(make_room); }

  // Returns false if there is not enough memory, and then takes nothing.
  bool take(unsigned device, std::uint64_t bytes);
  // Counts memory that the driver has already allocated, even beyond the grant.
  void take_anyway(unsigned device, std::uint64_t bytes);
  // Precondition: the bytes were taken.
  void give_back(unsigned device, std::uint64_t bytes);

  // Returns the unused part of the grant to the lender, and the size of this part to the caller.
  std::uint64_t collect(unsigned device);
  // Returns the limit of the VM, and what the session can still take. Returns nothing if there is no limit.
  std::optional<MemoryReserver::Headroom> headroom(unsigned device);
  std::uint64_t taken(unsigned device) const;

 private:
  struct Account {
    mutable ring::Mutex mutex;
    // `taken` may exceed `reserved` while a thread asks the lender, and after take_anyway().
    std::uint64_t taken GUARDED_BY(mutex) = 0;
    std::uint64_t reserved GUARDED_BY(mutex) = 0;
  };
  bool fits(const Account& a, std::uint64_t bytes) const REQUIRES(a.mutex) {
    return reserver_ == nullptr || (a.reserved >= a.taken && bytes <= a.reserved - a.taken);
  }
  void change(unsigned device, Account& a, std::uint64_t taken) REQUIRES(a.mutex) {
    a.taken = taken;
    published_[device].store(taken, std::memory_order_relaxed);
  }
  bool take_reserved(unsigned device, std::uint64_t bytes);
  bool reserve(unsigned device, std::uint64_t bytes) REQUIRES(asking_);

  MemoryReserver* const reserver_;
  const std::span<std::atomic<std::uint64_t>, ring::max_devices> published_;
  std::function<void(unsigned)> make_room_;
  ring::Mutex asking_;
  std::array<Account, ring::max_devices> accounts_;
};

}  // namespace host
