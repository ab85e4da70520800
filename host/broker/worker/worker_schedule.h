// A worker's registration with the scheduler of GPU time (host/scheduler/scheduler.h), and its pages, while this object
// lives.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/base/process/control.h"
#include "host/base/result.h"
#include "host/broker/config/config.h"
#include "host/broker/gpu/gpus.h"
#include "host/scheduler/scheduler.h"

namespace host::broker {

class WorkerSchedule {
 public:
  using Scheduler = scheduler::Scheduler;

  // The error is one sentence. `name` is shown in /proc. `kept`: the next broker may adopt it.
  static Result<std::unique_ptr<WorkerSchedule>> create(Scheduler& scheduler, Scheduler::Vm vm, const std::string& name,
                                                        bool kept);
  // Registers an earlier broker's worker with the pages that were kept.
  static std::unique_ptr<WorkerSchedule> join(Scheduler& scheduler, Scheduler::Vm vm,
                                              std::shared_ptr<scheduler::WorkerPages> pages);
  ~WorkerSchedule() { scheduler_.remove(client_); }
  WorkerSchedule(const WorkerSchedule&) = delete;
  WorkerSchedule& operator=(const WorkerSchedule&) = delete;

  const scheduler::WorkerPages& pages() const { return *pages_; }
  // Takes the worker's ready message, sent before it serves a guest. `gpus`: those that it sees, by its ordinals.
  void ready(pid_t process, const worker::ReadyMessage& reported, const std::vector<Gpu>& gpus);

 private:
  WorkerSchedule(Scheduler& scheduler, std::shared_ptr<scheduler::WorkerPages> pages)
      : scheduler_(scheduler), pages_(std::move(pages)) {}

  Scheduler& scheduler_;
  const std::shared_ptr<scheduler::WorkerPages> pages_;
  Scheduler::Client client_ = 0;
};

// The scheduler's options, and a VM's share, from the configuration.
scheduler::Scheduler::Options scheduler_options(const GpuOptions& gpu);
scheduler::Scheduler::Share share_of(const VmOptions& vm);

}  // namespace host::broker
