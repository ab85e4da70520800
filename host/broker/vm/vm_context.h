// What all parts of a VM read: its configuration, its number in the scheduler, and whether it ends. Vm owns it, and
// alone writes to it. Thread: the broker's event loop.
#pragma once

#include "host/base/event_loop.h"
#include "host/broker/config/config.h"
#include "host/broker/worker/worker_program.h"
#include "host/scheduler/scheduler.h"

namespace host::broker {

struct VmContext {
  // A busy client of a sharing daemon must exit by itself: a kill would end the other clients.
  static constexpr auto end_patience = std::chrono::seconds(2);

  EventLoop& loop;
  VmOptions options;
  WorkerProgram program;
  scheduler::Scheduler::Vm scheduled_as = 0;  // its number in the scheduler; 0: not scheduled
  bool stopping = false;                      // no further worker starts
};

}  // namespace host::broker
