// One VM: it makes the parts that share the VM's work, connects them, and gives them what guests, workers and the
// operator do. Owns these parts, and what all of them read.
//
// The parts, from the ground up: the region with its heartbeat, VmPersistence, which saves for the next broker,
// SlotTable with the states of slots, VmBounds, VmMemory and VmMps, WorkerPool with the workers, WorkerSupply, which
// decides how many there are, and GpuQuestions. `spare` slots are kept Ready, each with a worker whose driver is up. A
// claim has the next worker started; a release ends the worker and empties the slot; a worker that is gone makes its
// claimed slot Dead. A VM without sessions has no timer, unless it has an ivshmem-plain device
// (host/broker/transport/doorbell_poller.h) or its workers lack a GPU.
//
// Thread: the broker's event loop. Trust: slot_table.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "host/base/event_loop.h"
#include "host/base/result.h"
#include "host/broker/config/config.h"
#include "host/broker/gpu/gpus.h"
#include "host/broker/ops/status.h"
#include "host/broker/ops/trace_server.h"
#include "host/broker/region/heartbeat.h"
#include "host/broker/region/page_scrubber.h"
#include "host/broker/region/region.h"
#include "host/broker/transport/transport.h"
#include "host/broker/vm/gpu_questions.h"
#include "host/broker/vm/session_log.h"
#include "host/broker/vm/slot_table.h"
#include "host/broker/vm/vm_bounds.h"
#include "host/broker/vm/vm_context.h"
#include "host/broker/vm/vm_memory.h"
#include "host/broker/vm/vm_mps.h"
#include "host/broker/vm/vm_persistence.h"
#include "host/broker/vm/worker_gpus.h"
#include "host/broker/vm/worker_pool.h"
#include "host/broker/vm/worker_supply.h"
#include "host/broker/worker/start_pace.h"

namespace host::broker {

class Vm {
 public:
  // The error is one sentence.
  static Result<std::unique_ptr<Vm>> create(EventLoop& loop, const VmOptions& options, const BrokerOptions& broker,
                                            const WorkerProgram& program, TraceServer& traces, ScrubQueue& scrub_queue);
  ~Vm();
  Vm(const Vm&) = delete;
  Vm& operator=(const Vm&) = delete;

  // Calls `warm` once, when the first worker is Ready or has failed to start; at once if no worker is started ahead.
  void when_warm(std::function<void()> warm);
  // Ends all workers and starts no more; calls `done` when the last has gone, at the latest after `patience`. Ends a
  // removal in progress, whose `removed` is then not called.
  void stop(Clock::duration patience, std::function<void()> done);
  // Ends this VM while others go on: it accepts no guest, its sessions end, and its memory returns to the machine. Then
  // it calls `removed`, which must not destroy the Vm.
  void remove(Clock::duration patience, std::function<void()> removed);
  // Takes over the keys of `options` that need no restart (config_changes.h). `new_sessions`: unclaimed workers are
  // replaced by workers with the new values. An error, the reason, if the control group refuses.
  Result<void> change(const VmOptions& options, const WorkerProgram& program, bool new_sessions);

  const VmOptions& options() const { return context_.options; }
  const VmGpus& gpus() const { return context_.program.gpus; }
  // True if its region's memory is gone, so that it can only be removed.
  bool is_lost() const { return region_->is_lost(); }
  // True if the next broker can adopt its sessions.
  bool outlives_broker() const { return persistence_.outlives_broker(); }
  // Ends the workers of all sessions, or of the session in that slot, whose programs notice it. Returns their number.
  std::size_t end_sessions(std::optional<std::uint32_t> slot);
  // Sessions held by a program, with a running worker or without.
  std::size_t sessions() const { return slots_->sessions(); }
  VmStatus status() const;
  // Its number in the scheduler of GPU time.
  scheduler::Scheduler::Vm scheduled_as() const { return context_.scheduled_as; }

 private:
  Vm(EventLoop& loop, const VmOptions& options, const WorkerProgram& program);
  Result<void> open(const BrokerOptions& broker, TraceServer& traces, ScrubQueue& scrub_queue);
  void count_memory();
  void make_parts(TraceServer& traces, ScrubQueue& scrub_queue);
  Result<void> join_mps(bool goes_on);
  void go_on_with(const SavedVm& saved);
  void save(std::uint32_t k, SavedSlot& to) const;
  void end_all(Clock::duration patience, std::function<void()> done);

  void look();
  void on_peer_gone(std::uint32_t peer);
  void on_vm_gone();
  void nobody_left();
  void on_mps_lost(const std::string& why);

  // Destroyed from the last to the first: MPS and memory forget the workers before the workers end.
  VmContext context_;
  VmPersistence persistence_;
  std::unique_ptr<Region> region_;
  std::unique_ptr<SessionLog> log_;
  VmBounds bounds_{context_};
  std::unique_ptr<SlotTable> slots_;
  std::unique_ptr<WorkerPool> workers_;
  VmMemory memory_{context_};
  VmMps mps_{context_};
  std::unique_ptr<Transport> transport_;
  StartPace pace_;
  WorkerGpus gpus_;
  std::unique_ptr<WorkerSupply> supply_;
  std::unique_ptr<GpuQuestions> questions_;
  std::unique_ptr<Heartbeat> heartbeat_;
};

}  // namespace host::broker
