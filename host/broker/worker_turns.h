// A worker's place with the scheduler of turns (host/turns/scheduler.h): its pages, and its membership for as long as
// this object lives.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/broker/config.h"
#include "host/broker/gpus.h"
#include "host/turns/scheduler.h"
#include "host/worker/control.h"

namespace host::broker {

class WorkerTurns {
 public:
  // Null on failure, and `error` is one sentence. `name` is shown in /proc. `kept`: the next broker may adopt it.
  static std::unique_ptr<WorkerTurns> create(turns::Scheduler& scheduler, turns::Scheduler::Vm vm, const VmGpus& gpus,
                                             const std::string& name, bool kept, std::string& error);
  // Of a worker that an earlier broker has started, by what that one kept of it.
  static std::unique_ptr<WorkerTurns> join(turns::Scheduler& scheduler, turns::Scheduler::Vm vm, const VmGpus& gpus,
                                           std::shared_ptr<turns::Line> line);
  ~WorkerTurns() { scheduler_.remove(client_); }
  WorkerTurns(const WorkerTurns&) = delete;
  WorkerTurns& operator=(const WorkerTurns&) = delete;

  const turns::Line& line() const { return *line_; }
  turns::Scheduler::Client client() const { return client_; }

  // What the worker has said of its GPUs, before it served a guest: whether their order is the one that its turns have. An
  // environment that reorders them makes it take turns on the wrong ones.
  void saw(const worker::ReadyMessage& said);
  // The names of the GPUs on which its turns are known to be its own.
  const std::vector<std::string>& sure() const { return sure_; }

 private:
  WorkerTurns(turns::Scheduler& scheduler, std::shared_ptr<turns::Line> line, std::vector<std::string> gpus)
      : scheduler_(scheduler), line_(std::move(line)), gpus_(std::move(gpus)) {}

  turns::Scheduler& scheduler_;
  const std::shared_ptr<turns::Line> line_;
  const std::vector<std::string> gpus_;  // as the scheduler calls them
  std::vector<std::string> sure_;
  turns::Scheduler::Client client_ = 0;
};

// The scheduler's options out of the configuration.
turns::Scheduler::Options options_for_turns(const GpuOptions& gpu);

}  // namespace host::broker
