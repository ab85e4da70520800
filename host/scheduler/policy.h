// Decides which VMs may use one GPU now. The class has no threads, no clock and no system calls.
// docs/design/048-gpu-time.md has the reasons and the measurements.
//
// A VM that uses a GPU alone is never restricted. When two VMs want the GPU, one group of VMs has a lease, and the
// channels of the other VMs that want the GPU are disabled. A VM that launches and waits is a group of its own, since
// it would get almost no time with driver time slicing. VMs that queue far ahead of their waits share a lease: the
// driver time-slices among them, so that each VM fills the gaps of the other VMs. The VM with the lowest vruntime is
// next.
//
// Units: nanoseconds since boot. Thread-safety: one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "host/scheduler/exchange_budget.h"
#include "host/scheduler/gpu_time.h"
#include "host/scheduler/submission_pattern.h"

namespace host::scheduler {

// A VM's account.
struct Account {
  // GPU time: leases, divided among VMs that share one; without contention, the time in which the VM wanted the GPU
  Time had{};
  Time waited{};                // time spent waiting for leases
  std::uint64_t leases = 0;     // number of lease exchanges in the VM's favour
  std::uint64_t preempted = 0;  // the number of the VM's leases that ended early for another VM
  Account& operator+=(const Account& other) {
    had += other.had, waited += other.waited, leases += other.leases, preempted += other.preempted;
    return *this;
  }
};

class Policy {
 public:
  using Vm = std::uint32_t;

  struct Limits {
    Time lease = std::chrono::milliseconds(10);  // shortest lease while other VMs want the GPU
    // A VM that was disabled for this time is next, whatever its vruntime.
    Time longest_off = std::chrono::milliseconds(1000);
    bool operator==(const Limits&) const = default;
  };
  struct Share {
    double weight = 1;
    bool latency = false;  // the VM preempts other VMs until it is ahead of its share
    double reserve = 0;    // the smallest part of the GPU's time, from 0 to 1, that the VM gets while it wants the GPU
    bool operator==(const Share&) const = default;
  };
  // An order to switch channels. It is carried out as a whole: first `on`, then `off`. One order is in progress at a
  // time.
  struct Order {
    std::vector<Vm> on, off;
  };

  void set_limits(const Limits& limits) { limits_ = limits; }
  void add(Vm vm, const Share& share);
  void set_share(Vm vm, const Share& share);
  void remove(Vm vm);
  // Sets whether channels can be switched. If not, all channels stay enabled, and the policy only keeps the accounts.
  void set_switching(bool can);
  bool switches() const { return switches_; }
  // Called when a VM's channels have changed. New channels of a disabled VM may be enabled.
  void channels_changed(Vm vm);

  // Called with the present reports of the VM's workers, added up.
  void update(Vm vm, const Demand& demand, Time now);
  // Returns the order to carry out, if any. Must be called after all updates.
  std::optional<Order> step(Time now);
  // Called when the order has been carried out. `took`: how long this took.
  void done(Time now, Time took);
  // How often to call step() while several VMs want the GPU. Otherwise step() is called when a VM begins to want it.
  static constexpr Time look_every = std::chrono::microseconds(50);
  bool is_contended() const { return contended_; }
  bool any_off() const;

  Account account(Vm vm) const;
  bool holds(Vm vm) const;
  // Returns whether the VM is enabled after the orders carried out so far. True for an unknown VM.
  bool is_on(Vm vm) const;

 private:
  struct Member {
    Share share;
    Demand demand;
    bool on = true;
    bool beside = false;  // the VM uses the GPU concurrently with the holders, because switching costs too much
    SubmissionPattern pattern;
    bool just_woke = false;
    double vruntime = 0;  // seconds of GPU time divided by the weight; the lowest runs next
    Time wants_since{}, quiet_since{}, off_since{};
    Account account;
  };

  static bool wants(const Member& member, Time now);
  void charge(Time now);
  double weight_of(const Member& member) const;
  std::vector<Vm> group_of(Vm vm) const;
  double ahead_allowed(const Member& member) const;
  bool should_preempt(const Member& waker) const;
  std::optional<Order> enforce(std::vector<Vm> holders, Time now);
  std::optional<Order> exchange(std::vector<Vm> next, Time now);
  Time length() const;

  Limits limits_;
  bool switches_ = true, contended_ = false, under_way_ = false;
  bool preempting_ = false;  // the lease began early, and the budget has paid for its end
  std::map<Vm, Member> members_;
  std::vector<Vm> holders_, next_holders_;
  std::optional<Order> order_;
  double min_vruntime_ = 0;  // the lowest vruntime of the VMs that want the GPU; never decreases
  Time charged_{}, since_{};
  ExchangeBudget budget_;
};

}  // namespace host::scheduler
