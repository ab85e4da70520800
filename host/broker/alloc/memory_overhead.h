// The overhead of one VM's workers: GPU memory that their drivers hold beyond the leases, as measured.
//
// MemoryReservations owns it and calls it around each measurement. It keeps the overheads in WorkerHoldings up to date, and
// reports a worker that holds more than it may twice in a row. Thread: the broker's loop.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/broker/alloc/worker_holdings.h"
#include "host/broker/gpu/gpu_usage.h"

namespace host::broker {

class MemoryOverhead {
 public:
  struct Events {
    // No program has the slot's worker yet.
    std::function<bool(std::uint32_t slot)> is_spare;
    // An overhead has shrunk, and there is more room.
    std::function<void()> freed;
    // There is too little room for an overhead of this share.
    std::function<void(MemoryShare& share)> lacks_room;
    std::function<void(std::uint32_t slot, const std::string& why)> holds_too_much;
  };
  MemoryOverhead(MemoryShares& shares, WorkerHoldings& holdings, Events events)
      : shares_(shares), holdings_(holdings), events_(std::move(events)), workers_(holdings.slots()) {}

  // Forgets the measurements: the slot has another worker, or none.
  void reset(std::uint32_t slot) { workers_[slot] = {}; }
  // The first overhead is the estimate of a context.
  void ready(std::uint32_t slot);

  // Adds the names of the GPUs that are to be measured.
  void before_measuring(std::set<std::string>& wanted);
  // True: a worker holds more than it may, which is to be looked at again soon.
  bool measured(const GpuUses& uses);

 private:
  // A worker's use of a device.
  struct Measured {
    std::optional<std::uint64_t> holds;     // last measurement; nothing: the worker was not listed
    std::uint64_t taken_before = 0;         // bytes in use before measuring, by the worker's own account
    std::array<std::uint64_t, 4> recent{};  // last overheads: a measurement may miss an allocation
    std::size_t next = 0;
    unsigned above = 0;  // consecutive measurements above the limit
  };
  struct Worker {
    bool was_ready = false;  // ready when measuring began
    std::array<Measured, ring::max_devices> on;
  };

  template <class F>
  void each_measured(const GpuUses& uses, F f);
  void note(std::uint32_t slot, unsigned device, const GpuUse& use);
  std::uint64_t overhead_of(std::uint32_t slot, unsigned device) const;
  void cover(std::uint32_t slot, unsigned device);
  void add_overhead_allowance(std::uint32_t slot, unsigned device);
  bool is_above(std::uint32_t slot, unsigned device);

  MemoryShares& shares_;
  WorkerHoldings& holdings_;
  const Events events_;
  std::vector<Worker> workers_;
};

}  // namespace host::broker
