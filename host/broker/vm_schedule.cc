// A VM's share of the time of its GPUs.
#include "host/broker/vm.h"

namespace host::broker {

scheduler::Scheduler::Share Vm::share() const {
  return {.weight = static_cast<double>(options_.weight),
          .latency = options_.latency,
          .reserve = static_cast<double>(options_.reserve) / 100};
}

void Vm::watch_session() {
  if (mps_) mps_->watch();
}

}  // namespace host::broker
