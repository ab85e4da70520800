// Simulates one GPU, its VMs and the policy in virtual time. The costs of time slices, of a switch and of a program are
// as measured on an H200 (docs/design/048-gpu-time.md). Time advances in steps of 5 us.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "host/scheduler/policy.h"

namespace world {

using host::scheduler::Policy;
using host::scheduler::Time;
using namespace std::chrono_literals;

// A program that repeats a burst: the host submits `kernels` kernels of length `kernel`, one per `submit`, then waits,
// then computes for `host`.
struct Program {
  int kernels = 1;
  Time kernel = 5us, submit = 4us;
  Time host{};    // between a wait's end and the next burst
  Time period{};  // alternatively: a burst begins in each `period`
  bool never_waits = false;
  Time from{}, until = Time::max();  // the time in which the program runs
};

class World {
 public:
  static constexpr Time step = 5us, slice = 2048us, change_dry = 135us, change_cut = 215us;
  static constexpr Time on_takes = 300us, off_takes = 550us, off_acts = 250us;

  explicit World(bool policy_on = true, Policy::Limits limits = {}) : policy_on_(policy_on) {
    policy.set_limits(limits);
  }

  Policy::Vm add(const Program& program, Policy::Share share = {}) {
    vms_.push_back(std::make_unique<Vm>());
    vms_.back()->program = program;
    policy.add(static_cast<Policy::Vm>(vms_.size()), share);
    return static_cast<Policy::Vm>(vms_.size());
  }

  void run(Time how_long) {
    for (const Time end = now_ + how_long; now_ < end; now_ += step) advance();
  }
  void forget() {
    for (auto& vm : vms_) vm->bursts.clear(), vm->used = {};
    calls_time = {}, calls = 0, begun_ = now_;
  }

  // GPU time in which the VM made progress, as a fraction of the time since forget().
  double used(Policy::Vm vm) const { return std::chrono::duration<double>(of(vm).used) / (now_ - begun_); }
  double rate(Policy::Vm vm) const {
    return static_cast<double>(of(vm).bursts.size()) / std::chrono::duration<double>(now_ - begun_).count();
  }
  Time burst(Policy::Vm vm, double part) const {
    auto all = of(vm).bursts;
    if (all.empty()) return Time::max();
    std::sort(all.begin(), all.end());
    return all[std::min(all.size() - 1, static_cast<std::size_t>(part * static_cast<double>(all.size())))];
  }
  double in_calls() const { return std::chrono::duration<double>(calls_time) / (now_ - begun_); }
  Time now() const { return now_; }

  Policy policy;
  Time calls_time{};
  int calls = 0;

 private:
  struct Vm {
    Program program;
    bool on = true;
    std::deque<Time> queue;  // the remaining time of each kernel
    int to_submit = 0;
    bool waits = false;
    Time next_submit{}, burst_began{}, next_burst{};
    std::uint64_t submitted = 0, settled = 0, waits_done = 0;
    Time used{};
    std::vector<Time> bursts;
  };
  const Vm& of(Policy::Vm vm) const { return *vms_[vm - 1]; }

  void advance() {
    for (auto& vm : vms_) go_on(*vm);
    run_gpu();
    carry_out();
    if (!policy_on_) return;
    bool changed = false;
    for (std::size_t i = 0; i < vms_.size(); ++i) {
      const Vm& vm = *vms_[i];
      changed |= (vm.submitted != vm.settled) != wanted_[i];
      wanted_[i] = vm.submitted != vm.settled;
    }
    if (!changed && now_ - looked_ < Policy::look_every) return;
    looked_ = now_;
    for (std::size_t i = 0; i < vms_.size(); ++i) {
      const Vm& vm = *vms_[i];
      policy.update(static_cast<Policy::Vm>(i + 1), {vm.submitted, vm.waits_done, wanted_[i], vm.waits}, now_);
    }
    if (order_) return;
    order_ = policy.step(now_);
    if (order_) begun_order_ = now_;
  }

  void go_on(Vm& vm) {
    const Program& p = vm.program;
    if (now_ < p.from || now_ >= p.until) {  // the program's process has ended
      vm.queue.clear();
      vm.settled = vm.submitted, vm.to_submit = 0, vm.waits = false;
      return;
    }
    if (vm.to_submit == 0 && !vm.waits && now_ >= vm.next_burst) {
      vm.to_submit = p.kernels;
      vm.burst_began = vm.next_submit = now_;
      if (p.period != Time::zero()) {
        std::uniform_real_distribution<double> jitter(.9, 1.1);
        vm.next_burst = now_ + std::chrono::duration_cast<Time>(p.period * jitter(random_));
      }
    }
    while (vm.to_submit > 0 && vm.next_submit <= now_ && vm.queue.size() < 1000) {
      vm.queue.push_back(p.kernel);
      ++vm.submitted;
      vm.next_submit += p.submit;
      if (--vm.to_submit == 0 && !p.never_waits) vm.waits = true;
    }
    if (vm.waits && vm.queue.empty()) {
      vm.waits = false;
      ++vm.waits_done;
      vm.settled = vm.submitted;
      vm.bursts.push_back(now_ - vm.burst_began);
      if (p.period == Time::zero()) vm.next_burst = now_ + p.host;
    }
  }

  void run_gpu() {
    for (Time left = step; left > Time::zero();) {
      if (changing_ > Time::zero()) {
        const Time part = std::min(left, changing_);
        changing_ -= part, left -= part;
        continue;
      }
      Vm* const now = running_ < vms_.size() ? vms_[running_].get() : nullptr;
      const bool can = now != nullptr && now->on && !now->queue.empty();
      std::size_t other = vms_.size();
      for (std::size_t i = 1; i <= vms_.size() && other == vms_.size(); ++i) {
        const std::size_t k = (running_ + i) % vms_.size();
        if (k != running_ && vms_[k]->on && !vms_[k]->queue.empty()) other = k;
      }
      if (other < vms_.size() && (!can || sliced_ >= slice)) {
        changing_ = can ? change_cut : change_dry;
        running_ = other, sliced_ = {};
        continue;
      }
      if (!can) return;
      const Time part = std::min(left, now->queue.front());
      now->queue.front() -= part, now->used += part, sliced_ += part, left -= part;
      if (now->queue.front() == Time::zero()) now->queue.pop_front();
    }
  }

  void carry_out() {
    if (!order_) return;
    const Time since = now_ - begun_order_, on = order_->on.empty() ? Time::zero() : on_takes;
    const Time all = on + (order_->off.empty() ? Time::zero() : off_takes);
    if (since >= on)
      for (const auto vm : order_->on) vms_[vm - 1]->on = true;
    if (since >= on + off_acts)
      for (const auto vm : order_->off) vms_[vm - 1]->on = false;
    if (since < all) return;
    calls_time += all, ++calls;
    order_.reset();
    policy.done(now_, all);
  }

  const bool policy_on_;
  Time now_ = 1s, begun_ = 1s, looked_{}, begun_order_{};
  std::vector<std::unique_ptr<Vm>> vms_;
  std::vector<bool> wanted_ = std::vector<bool>(64);
  std::size_t running_ = 0;
  Time changing_{}, sliced_{};
  std::optional<Policy::Order> order_;
  std::mt19937 random_{1};
};

}  // namespace world
