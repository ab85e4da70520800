// A VM's workers: owns the worker of each slot and what the broker shares with it, from its start to the effect of its
// end on the slot.
//
// Callers: the other parts of the same Vm, in the broker's event loop. What the constructor takes outlives it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/result.h"
#include "host/broker/mps/mps_connect_proxy.h"
#include "host/broker/ops/status.h"
#include "host/broker/ops/trace_server.h"
#include "host/broker/vm/session_log.h"
#include "host/broker/vm/slot_table.h"
#include "host/broker/vm/vm_context.h"
#include "host/broker/vm/vm_memory.h"
#include "host/broker/vm/vm_mps.h"
#include "host/broker/vm/vm_persistence.h"
#include "host/broker/vm/worker_gpus.h"
#include "host/broker/vm/worker_history.h"
#include "host/broker/vm/worker_launcher.h"
#include "host/broker/worker/start_pace.h"
#include "host/broker/worker/telemetry.h"
#include "host/broker/worker/worker_process.h"
#include "host/broker/worker/worker_schedule.h"

namespace host::broker {

// The worker of one slot. Without `process` there is none.
struct SlotWorker {
  std::unique_ptr<Telemetry> telemetry;
  TraceServer::Session session = 0;
  std::unique_ptr<WorkerSchedule> schedule;  // null: not scheduled
  std::unique_ptr<WorkerProcess> process;
  std::unique_ptr<MpsConnectProxy> proxy;  // null: none
  WorkerJail jail;                         // once the worker is ready
  EventLoop::Id start_timer = 0;           // deadline for the worker to be ready
  bool may_spin = false;
  bool is_ready = false;
  bool surplus = false;  // unused, and being ended
};

class WorkerPool {
 public:
  struct Events {
    // The worker's slot is Ready. Not called while the VM ends.
    std::function<void(std::uint32_t k, const worker::ReadyMessage& reported)> ready;
    std::function<void()> gone;
  };
  // The other parts of the VM that a worker's life concerns.
  struct Parts {
    SlotTable& slots;
    VmPersistence& persistence;
    VmMemory& memory;
    VmMps& mps;
    WorkerGpus& gpus;
    SessionLog& log;
    StartPace& pace;
    TraceServer& traces;
  };

  WorkerPool(const VmContext& context, const Parts& parts, const WorkerLauncher& launcher, Events events);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  const SlotWorker& operator[](std::uint32_t k) const { return workers_[k]; }
  const WorkerHistory& history() const { return history_; }

  // Precondition: the slot is Empty. False if no worker could be started; the next attempt is then arranged.
  bool start(std::uint32_t k);
  // Ends a worker without a session, whose slot must be Starting.
  void end_unused(std::uint32_t k);
  // Ends a worker for `reason`, a string that lives for ever.
  void end_session(std::uint32_t k, const char* reason);
  void end_each(const char* reason);
  // Ends all workers, and calls `done` when the last has gone.
  void end_all(Clock::duration patience, std::function<void()> done);
  // Ends traces, timers and the use of the scheduler, before the VM leaves it.
  void leave();

  // A session has the worker, by its own account.
  void note_owner(std::uint32_t k, const ring::SlotOwner& owner);
  // The fault that a session has reported, as text; "": none.
  std::string reported_fault() const;

  // Its part of the record for the next broker (host/broker/vm/vm_persistence.h).
  void save(std::uint32_t k, SavedSlot& to) const;
  void adopt(std::uint32_t k, const SavedSlot& was);
  // Continues what the earlier broker had begun.
  void resolve(std::uint32_t k);

 private:
  bool adopt_worker(std::uint32_t k, const SavedSlot& was);
  bool adopt_proxy(std::uint32_t k, const SavedSlot& was);
  bool one_more_may_spin() const;
  Result<void> give_pages(std::uint32_t k);
  WorkerProcess::Events events_of(std::uint32_t k);
  void keep(std::uint32_t k);
  void note_ready(std::uint32_t k, const WorkerProcess::Ready& reported);
  void on_ready(std::uint32_t k, const WorkerProcess::Ready& reported);
  void on_gone(std::uint32_t k, const WorkerProcess::Exit& exit);
  void conclude(std::uint32_t k, const WorkerProcess::Exit& exit);
  void on_start_failed(std::uint32_t k, const std::string& why);

  const VmContext& context_;
  const Parts parts_;
  WorkerLauncher launcher_;
  const Events events_;
  WorkerHistory history_;
  std::vector<SlotWorker> workers_;
  EventLoop::Id stop_timer_ = 0;
  std::function<void()> stopped_;
};

}  // namespace host::broker
