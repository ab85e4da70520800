// One VM: its region, its guests' way to the host, and the life of its slots. vm.cc has the directory, vm_workers.cc
// the workers, vm_restart.cc what outlives the broker, vm_gpus.cc the GPUs that they find, vm_memory.cc their device
// memory, vm_mps.cc their place at MPS, vm_status.cc their part of `ivgpu status`,
// vm_questions.cc what its guests ask of its GPUs.
//
// ring/layout/layout_c.h describes the life of a slot. Here is the broker's part of it: `spare` slots are kept Ready, each with
// a worker that has its driver up; a claim makes the next be started; a release ends the worker, scrubs the slot and
// makes it Empty under the next epoch; a worker that is gone makes its claimed slot Dead. A released slot of which the
// guest's kernel still uses pages (SlotEntry::pinned) loses its worker at once, and is scrubbed when the kernel lets go, or
// when the guest has ended. A VM without sessions has no timer, but for one with an ivshmem-plain device (host/broker/transport/doorbell_poller.h), or
// whose workers lack a GPU.
//
// Trust: the directory is a hint that guests give. The broker believes `Slot::known`, and only steps that slot_step.h
// allows change it; every other word is put back. A guest can waste its own VM's slots, nothing else: `pinned` counts in
// a released slot alone, where it can only keep that slot from being used.
//
// Orderings. A: a look acquires everything that a guest released with its compare-and-swap (its process's work, behind
// Released), and so does a look at `pinned` (what a device wrote last, behind 0). B: the broker's steps release its work
// before them (the scrubbing, behind Empty; the worker's filling, behind Ready). Covered by: the model slots and the
// explorer's scenario slots (docs/models.md).
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/log_limiter.h"
#include "host/broker/config/config.h"
#include "host/broker/gpu/gpus.h"
#include "host/broker/mps/mps_connect_proxy.h"
#include "host/broker/ops/status.h"
#include "host/broker/ops/trace_server.h"
#include "host/broker/region/heartbeat.h"
#include "host/broker/region/page_scrubber.h"
#include "host/broker/region/region.h"
#include "host/broker/region/region_scrubbers.h"
#include "host/broker/transport/transport.h"
#include "host/broker/vm/gpu_questions.h"
#include "host/broker/vm/session_log.h"
#include "host/broker/vm/slot_table.h"
#include "host/broker/vm/vm_bounds.h"
#include "host/broker/vm/vm_context.h"
#include "host/broker/vm/vm_memory.h"
#include "host/broker/vm/vm_mps.h"
#include "host/broker/vm/vm_persistence.h"
#include "host/broker/vm/vm_record.h"
#include "host/broker/vm/worker_gpus.h"
#include "host/broker/vm/worker_history.h"
#include "host/broker/vm/worker_pool.h"
#include "host/broker/worker/start_pace.h"
#include "host/broker/worker/telemetry.h"
#include "host/broker/worker/worker_process.h"
#include "host/broker/worker/worker_schedule.h"

namespace host::broker {

class Vm {
 public:
  // Null on failure, and `error` is one sentence.
  static std::unique_ptr<Vm> create(EventLoop& loop, const VmOptions& options, const BrokerOptions& broker,
                                    const WorkerProgram& program, TraceServer& traces, ScrubQueue& scrub_queue,
                                    std::string& error);
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
  // replaced by workers with the new values. False if the control group refuses, and `error` is the reason.
  bool change(const VmOptions& options, const WorkerProgram& program, bool new_sessions, std::string& error);

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
  Vm(EventLoop& loop, const VmOptions& options, const WorkerProgram& program, TraceServer& traces,
     ScrubQueue& scrub_queue);
  bool open(const BrokerOptions& broker, std::string& error);
  void save(std::uint32_t k, SavedSlot& to) const;
  void go_on_with(const SavedVm& saved);
  void end_all(Clock::duration patience, std::function<void()> done);

  void look();
  void on_session();
  bool is_full() const;
  void look_at_wanted();
  void on_peer_gone(std::uint32_t peer);
  void on_vm_gone();
  void on_holder_gone(std::uint32_t k);
  void nobody_left();

  void on_mps_lost(const std::string& why);
  void end_lost_sessions();

  void refill();
  void end_surplus();
  void end_unclaimed(std::uint32_t keep);
  void end_unclaimed_where(const std::function<bool(std::uint32_t)>& ends);
  void end_starting(std::uint32_t keep);

  VmContext context_;
  TraceServer& traces_;
  ScrubQueue& scrub_queue_;
  VmPersistence persistence_;
  std::unique_ptr<Region> region_;
  std::unique_ptr<SessionLog> log_;
  std::unique_ptr<SlotTable> slots_;
  VmBounds bounds_{context_};  // outlives the workers
  std::unique_ptr<WorkerPool> workers_;
  VmMemory memory_{context_};
  VmMps mps_{context_};
  std::unique_ptr<Transport> transport_;
  StartPace pace_;
  std::unique_ptr<Heartbeat> heartbeat_;
  std::uint32_t wanted_seen_ = 0;
  std::uint32_t demand_ = 0;  // guests that found no Ready slot and have not been served yet
  WorkerGpus gpus_;
  std::unique_ptr<GpuQuestions> questions_;
};

}  // namespace host::broker
