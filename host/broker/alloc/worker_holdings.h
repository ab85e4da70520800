// The GPU memory that each worker of one VM holds: its lease, and its driver's overhead.
//
// MemoryReservations owns it and lends through it; MemoryOverhead changes the overheads. Thread: the broker's loop.
//
// Trust: a worker's own account (`taken`) counts up to its lease.
// Invariant: all bytes of a holding come from the holding's share, and return to it when the worker has gone.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "host/base/process/control.h"
#include "host/broker/alloc/memory_shares.h"

namespace host::broker {

class WorkerHoldings {
 public:
  // The worker's own account: the bytes of its lease that it uses.
  using Taken = std::function<std::uint64_t(std::uint32_t slot, unsigned device)>;
  struct Holding {
    MemoryShare* share = nullptr;
    std::uint64_t reserved = 0, overhead = 0;
  };
  // How much a driver may grow before the next measurement, for a kernel's code for example.
  static constexpr std::uint64_t overhead_allowance = std::uint64_t{64} << 20;
  // More than any GPU has; sums of a few of these do not overflow.
  static constexpr std::uint64_t absurd = std::uint64_t{1} << 56;

  WorkerHoldings(MemoryShares& shares, std::size_t slots, Taken taken)
      : shares_(shares), taken_(std::move(taken)), workers_(slots) {}

  // Events in a worker's life. ready() moves the charge to the right GPU, which it finds in `accounts`: the driver may
  // order GPUs differently from the kernel.
  void started(std::uint32_t slot, pid_t process);
  void ready(std::uint32_t slot, const worker::ReadyMessage& reported, GpuAccounts& accounts);
  void release(std::uint32_t slot);

  std::uint32_t slots() const { return static_cast<std::uint32_t>(workers_.size()); }
  pid_t process(std::uint32_t slot) const { return workers_[slot].process; }  // 0: no worker
  bool is_ready(std::uint32_t slot) const { return workers_[slot].is_ready; }
  unsigned devices(std::uint32_t slot) const { return workers_[slot].devices; }
  const Holding& at(std::uint32_t slot, unsigned device) const { return workers_[slot].held[device]; }
  MemoryShare& share(std::uint32_t slot, unsigned device) const { return *at(slot, device).share; }

  void reserve(std::uint32_t slot, unsigned device, std::uint64_t bytes);
  void take_back(std::uint32_t slot, unsigned device, std::uint64_t bytes);
  // Up to `wanted`, as far as there is room.
  void grow_overhead(std::uint32_t slot, unsigned device, std::uint64_t wanted);
  void shrink_overhead(std::uint32_t slot, unsigned device, std::uint64_t wanted);

  std::uint64_t taken(std::uint32_t slot, unsigned device) const;
  std::uint64_t unused(std::uint32_t slot, unsigned device) const {
    return at(slot, device).reserved - taken(slot, device);
  }
  // By one worker, and by all together.
  std::uint64_t used_by(std::uint32_t slot, const MemoryShare& share) const;
  std::uint64_t used(const MemoryShare& share) const;
  void see_peak(MemoryShare& share) const;

 private:
  struct Worker {
    pid_t process = 0;
    bool is_ready = false;
    std::array<Holding, ring::max_devices> held;
    unsigned devices = 0;
  };

  void move_to(Holding& held, MemoryShare& share);

  MemoryShares& shares_;
  const Taken taken_;
  std::vector<Worker> workers_;
};

}  // namespace host::broker
