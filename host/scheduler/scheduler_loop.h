// The scheduler's thread. It reads the reports of all workers (ring/ops/gpu_use.h), asks the Policy of each GPU, and
// makes a Switcher carry out the orders.
//
// Scheduler owns this object and runs it in a thread of its own. While VMs contend for a GPU, the thread looks every 50
// us. While one VM uses a GPU, the thread looks a hundred times a second, to keep the account. Otherwise the thread
// sleeps until a worker sends a doorbell. Each worker has a doorbell of its own.
//
// Threads: after the constructor, only the thread in run() touches this object. Other threads communicate with it by
// the queues.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/scheduler/policy.h"
#include "host/scheduler/scheduler_queues.h"
#include "host/scheduler/switcher.h"
#include "host/scheduler/worker_pages.h"

namespace host::scheduler {

class SchedulerLoop {
 public:
  // `queues` must be open, and must outlive this object.
  SchedulerLoop(const SchedulerOptions& options, SchedulerQueues& queues);
  SchedulerLoop(const SchedulerLoop&) = delete;
  SchedulerLoop& operator=(const SchedulerLoop&) = delete;

  // Runs until the message Stop is received.
  void run();

 private:
  using Vm = Policy::Vm;

  // A worker's state on one GPU.
  struct OnGpu {
    std::uint32_t device = 0;              // the worker's ordinal of the GPU
    std::optional<std::uint32_t> version;  // version of the channel table when the channels were last switched
    std::uint64_t seen = 0;                // number of submissions at the last look
  };
  struct Worker {
    Vm vm = 0;
    std::shared_ptr<WorkerPages> pages;
    pid_t process = 0;
    std::uint32_t rm_client = 0;
    std::map<std::string, OnGpu> on;  // keyed by GPU
  };
  struct Gpu {
    Policy policy;
    std::optional<std::size_t> place;  // the switcher's index of the GPU; none: the GPU's channels cannot be switched
    bool under_way = false;
    Time began{};
    Time active{};       // when a VM last wanted the GPU
    Time contended{};    // when two VMs last wanted the GPU
    Time read_tables{};  // when workers' channel tables were last read
    std::set<Vm> vms;
  };

  bool take_messages();
  void take(const SchedulerOptions& options);
  void take(const SchedulerQueues::NewShare& message);
  void take(const SchedulerQueues::NoVm& message);
  void take(const SchedulerQueues::NewClient& message);
  void take(const SchedulerQueues::Ready& message);
  void take(const SchedulerQueues::NoClient& message);
  void take(const SchedulerQueues::NewSwitcher& message);
  void take(SchedulerQueues::ReportRequest);
  void take(SchedulerQueues::Stop) {}
  Demand demand_of(const Worker& worker, std::uint32_t device) const;
  void look(const std::string& name, Gpu& gpu, Time now);
  void look_at_channels(const std::string& name, Gpu& gpu, Time now);
  void carry_out(const std::string& name, Gpu& gpu, const Policy::Order& order, Time now);
  std::vector<Switcher::Worker> workers_of(const std::string& name, const Gpu& gpu, const std::vector<Vm>& vms,
                                           bool to_be_on);
  void hear_switcher(Time now);
  void lose_switcher();
  void let_all_on();
  void arm(Worker& worker);
  void find_doorbells();
  void rest(Time until_next);

  SchedulerOptions options_;
  SchedulerQueues& queues_;
  std::map<Vm, Policy::Share> shares_;
  std::map<std::string, Gpu> gpus_;  // keyed by name
  std::map<SchedulerQueues::Client, Worker> workers_;
  std::unique_ptr<Switcher> switcher_;
  std::vector<pollfd> doorbells_;  // the doorbells of the queues, of the switcher, and of `workers_` in order
  std::uint32_t wake_ = 0;
  Time kept_{}, rested_{};
};

}  // namespace host::scheduler
