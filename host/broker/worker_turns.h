// A worker's place with the scheduler of turns (host/turns/scheduler.h): its pages, and its membership for as long as
// this object lives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/broker/config.h"
#include "host/broker/gpus.h"
#include "host/turns/scheduler.h"

namespace host::broker {

class WorkerTurns {
 public:
  // Null on failure, and `error` is one sentence. `name` is shown in /proc.
  static std::unique_ptr<WorkerTurns> create(turns::Scheduler& scheduler, turns::Scheduler::Vm vm, const VmGpus& gpus,
                                             const std::string& name, std::string& error);
  ~WorkerTurns() { scheduler_.remove(client_); }
  WorkerTurns(const WorkerTurns&) = delete;
  WorkerTurns& operator=(const WorkerTurns&) = delete;

  const turns::Line& line() const { return *line_; }

 private:
  WorkerTurns(turns::Scheduler& scheduler, std::shared_ptr<turns::Line> line) : scheduler_(scheduler), line_(line) {}

  turns::Scheduler& scheduler_;
  const std::shared_ptr<turns::Line> line_;
  turns::Scheduler::Client client_ = 0;
};

// The scheduler's options out of the configuration.
turns::Scheduler::Options options_for_turns(const GpuOptions& gpu);

// What the scheduler calls a GPU: the same for all VMs that see it.
std::string name_for_turns(const Gpu& gpu);

}  // namespace host::broker
