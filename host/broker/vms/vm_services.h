// Owns what all VMs share: GPU accounts and locks, control groups, the scheduler, MPS, GPU facts, the trace server and
// the scrub queue; and describes the workers of a VM. It outlives the VMs. Only the thread of the event loop uses it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/result.h"
#include "host/broker/alloc/gpu_accounts.h"
#include "host/broker/alloc/gpu_holds.h"
#include "host/broker/alloc/gputime_helper.h"
#include "host/broker/config/config.h"
#include "host/broker/config/config_changes.h"
#include "host/broker/gpu/gpu_fact_cache.h"
#include "host/broker/gpu/gpus.h"
#include "host/broker/mps/mps.h"
#include "host/broker/ops/trace_server.h"
#include "host/broker/region/page_scrubber.h"
#include "host/broker/worker/cgroup.h"
#include "host/broker/worker/worker_program.h"
#include "host/scheduler/scheduler.h"

namespace host::broker {

class VmServices {
 public:
  explicit VmServices(EventLoop& loop) : loop_(loop), accounts_(loop), traces_(loop), scrub_queue_(loop) {}
  VmServices(const VmServices&) = delete;
  VmServices& operator=(const VmServices&) = delete;

  // Sets the source of the GPU facts that guests may see; call it before start().
  void report_facts_by(std::unique_ptr<GpuUsage> usage);
  // Locks these VMs' GPUs if the configuration requires that no other broker uses them.
  Result<void> hold_gpus(const Config& config, const std::vector<VmGpus>& gpus) {
    return holds_.take_for(config, gpus);
  }
  // Starts all that a VM needs. `program`: without the parts that this object provides. `may_follow`: MPS daemons of an
  // earlier broker may still be ending. The error is one sentence.
  Result<void> start(const Config& config, const WorkerProgram& program, const std::vector<VmGpus>& gpus,
                     bool may_follow);
  // Starts the switching of GPU time, which resumes the workers of the VMs that exist: call it when the VMs of an
  // earlier broker have been adopted. Null under MPS: processes share one context there, so no VM has channels of its
  // own.
  std::unique_ptr<GpuTimeHelper> start_gpu_time();
  // Logs whether VMs have control groups. Called when everything else is ready: a broker that fails to start logs its
  // reason alone.
  void report_groups() const;

  // Copies the changes that need no restart; apply_options() brings them into effect.
  Changes take_over_options(const GpuOptions& wanted) { return take_over(gpu_, wanted); }
  void apply_options();

  // The workers of a VM.
  WorkerProgram program_for(const VmOptions& options, const VmGpus& gpus) const;
  // The path of the driver library.
  const std::string& library() const { return program_.library; }
  bool shares_by_mps() const { return mps_ != nullptr; }
  GpuAccounts& accounts() { return accounts_; }
  scheduler::Scheduler& scheduler() const { return *scheduler_; }
  TraceServer& traces() { return traces_; }
  ScrubQueue& scrub_queue() { return scrub_queue_; }

  // Lets MPS daemons go on when the broker ends.
  void leave();
  // Ends the services that are processes, when the last worker has gone; then calls `done`.
  void end(const std::function<void()>& done);

 private:
  Result<void> make_groups(const BrokerOptions& broker);
  void start_mps(bool may_follow);

  EventLoop& loop_;
  std::string runtime_dir_;
  GpuOptions gpu_;         // the values in effect
  WorkerProgram program_;  // without the parts that differ by VM
  GpuAccounts accounts_;
  GpuHolds holds_;
  std::unique_ptr<Groups> groups_;  // null: not wanted
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<Mps> mps_;             // null unless the policy is "mps"
  std::unique_ptr<GpuFactCache> facts_;  // null: guests see no facts
  TraceServer traces_;
  ScrubQueue scrub_queue_;
};

}  // namespace host::broker
