// Asks which processes GPUs work for, while VMs have sessions and the driver slices their GPUs, so that the VMs' time can
// be told (host/broker/sampled_time.h). While turns are taken on a GPU, who looks for workers without a turn asks
// (host/broker/turn_watch.h); both ask the same, since each sample is told once, and what the other is told counts, too.
//
// Cost: a question each 200 ms, which the helper answers in 1.5 ms on an H200; none while no VM has a session.
//
// Threads: the broker's one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "host/broker/event_loop.h"
#include "host/broker/gpu_usage.h"
#include "host/broker/sampled_time.h"
#include "host/turns/scheduler.h"

namespace host::broker {

// Of the time since 1970 to the scheduler's.
std::chrono::nanoseconds offset_of_clocks();

class WorkSamples {
 public:
  struct Workers {
    std::map<pid_t, SampledTime::Vm> vm_of;  // all that live
    std::set<std::string> gpus;              // of the VMs that have sessions
  };
  struct Acts {
    std::function<const turns::Scheduler::Report&()> report;
    std::function<Workers()> workers;
    std::function<std::chrono::nanoseconds()> offset = offset_of_clocks;
  };
  // As often as there are samples, so that each is seen.
  static constexpr auto between = std::chrono::milliseconds(200);
  // A program that ends at once is worth no question; nor is a GPU of which nobody tells.
  static constexpr auto before_first = std::chrono::seconds(1), where_missing = std::chrono::seconds(10);

  WorkSamples(EventLoop& loop, std::unique_ptr<GpuUsage> usage, Acts acts);
  ~WorkSamples();
  WorkSamples(const WorkSamples&) = delete;
  WorkSamples& operator=(const WorkSamples&) = delete;

  // For who else asks; this object must outlive it.
  std::unique_ptr<GpuUsage> for_others();
  // A session has begun.
  void watch();
  SampledStatus of(SampledTime::Vm vm, const std::vector<std::string>& gpus) const { return sums_.of(vm, gpus); }
  SampledStatus of_gpu(SampledTime::Vm vm, const std::string& gpu) const { return sums_.of_gpu(vm, gpu); }
  void forget(SampledTime::Vm vm) { sums_.forget(vm); }

 private:
  class Shared;
  bool ask(const std::vector<std::string>& gpus, std::function<void(const GpuUses&)> answer);
  void look_after(Clock::duration delay);
  void look();
  void heard(const GpuUses& uses);

  EventLoop& loop_;
  const std::unique_ptr<GpuUsage> usage_;
  const Acts acts_;
  SampledTime sums_;
  EventLoop::Id timer_ = 0;
  bool looking_ = false;
  std::set<std::string> told_missing_;
};

}  // namespace host::broker
