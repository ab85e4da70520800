// How a VM's workers are started: their command line and the descriptors that they inherit. Owns the limit on the lines
// of their log.
//
// Callers: WorkerPool, in the broker's event loop. What the constructor takes outlives it, and it outlives the workers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/broker/region/region.h"
#include "host/broker/transport/transport.h"
#include "host/broker/vm/vm_bounds.h"
#include "host/broker/vm/vm_context.h"
#include "host/broker/vm/vm_memory.h"
#include "host/broker/vm/vm_mps.h"
#include "host/broker/vm/vm_persistence.h"
#include "host/broker/worker/telemetry.h"
#include "host/broker/worker/worker_process.h"
#include "host/broker/worker/worker_schedule.h"

namespace host::broker {

class WorkerLauncher {
 public:
  WorkerLauncher(const VmContext& context, const Region& region, const Transport& transport,
                 const VmPersistence& persistence, const VmBounds& bounds, const VmMemory& memory, const VmMps& mps)
      : context_(context),
        region_(region),
        transport_(transport),
        persistence_(persistence),
        bounds_(bounds),
        memory_(memory),
        mps_(mps) {}

  // The name of the worker of slot k in the log.
  std::string label_of(std::uint32_t k) const;
  // `schedule`: null if it is not scheduled.
  WorkerCommand command_for(std::uint32_t k, bool may_spin, const Telemetry& telemetry, const WorkerSchedule* schedule);
  WorkerLog& log() { return log_; }

 private:
  std::vector<std::string> arguments_for(std::uint32_t k, bool may_spin) const;

  const VmContext& context_;
  const Region& region_;
  const Transport& transport_;
  const VmPersistence& persistence_;
  const VmBounds& bounds_;
  const VmMemory& memory_;
  const VmMps& mps_;
  WorkerLog log_;
};

}  // namespace host::broker
