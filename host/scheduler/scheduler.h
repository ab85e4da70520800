// The broker's side of the scheduler of GPU time. This class starts the scheduler's thread (scheduler_loop.h), sends
// messages to the thread (scheduler_queues.h), and receives its reports. The thread is separate from the broker's loop,
// which may be busy for milliseconds.
//
// Thread-safety: only the broker's thread calls the functions.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "host/base/result.h"
#include "host/scheduler/policy.h"
#include "host/scheduler/scheduler_loop.h"
#include "host/scheduler/scheduler_queues.h"
#include "host/scheduler/switcher.h"
#include "host/scheduler/worker_pages.h"

namespace host::scheduler {

class Scheduler {
 public:
  using Vm = Policy::Vm;
  using Share = Policy::Share;
  using Client = SchedulerQueues::Client;
  using Options = SchedulerOptions;
  using Sharing = scheduler::Sharing;
  using Report = SchedulerReport;

  // Starts the scheduler. Returns an error of one sentence if the thread cannot be started.
  static Result<std::unique_ptr<Scheduler>> start(const Options& options);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void change(const Options& options);
  // Replaces the switcher. The new switcher first enables all workers. Null: no channels are switched.
  void set_switcher(std::unique_ptr<Switcher> switcher);
  Vm add_vm(const Share& share);
  void change_vm(Vm vm, const Share& share);
  void remove_vm(Vm vm);
  Client add(Vm vm, std::shared_ptr<WorkerPages> pages);
  // Called when the worker is ready. `rm_client`: the client of the worker's driver, which the worker reported before
  // it served a guest. If an older worker reported the same number, the number now belongs to this worker. `gpus`: the
  // names of the GPUs that the worker sees, indexed by its ordinals.
  void ready(Client client, pid_t process, std::uint32_t rm_client, std::vector<std::string> gpus);
  void remove(Client client);

  // Readable when the switcher is lost, until take_lost() returns true.
  int lost_fd() const { return queues_.lost_fd(); }
  bool take_lost() { return queues_.take_lost(); }
  // Returns the present state. Waits for the thread's answer, which takes microseconds; after 20 ms returns the last
  // report.
  const Report& report();
  // Returns the last report or, if that is older than `age`, a new one.
  const Report& report_of(Time age);

 private:
  Scheduler() = default;

  SchedulerQueues queues_;
  std::unique_ptr<SchedulerLoop> loop_;
  std::shared_ptr<const Report> report_ = std::make_shared<Report>();  // the newest report received
  Vm vms_ = 0;
  Client clients_ = 0;
  std::thread thread_;
};

}  // namespace host::scheduler
