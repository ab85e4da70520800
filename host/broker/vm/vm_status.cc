// A VM's part of `ivgpu status`.
#include <algorithm>

#include "host/broker/vm/vm.h"

namespace host::broker {

VmStatus Vm::status() const {
  VmStatus status{context_.options.name,
                  transport_->socket(),
                  transport_->memory(),
                  static_cast<std::uint64_t>(context_.options.region_size),
                  region_->slot_bytes(),
                  context_.options.jail,
                  context_.options.spin_threads,
                  context_.options.spin_us,
                  context_.options.wait_spin_ms,
                  transport_->connections(),
                  workers_->history().counters(),
                  workers_->history().ends(),
                  {},
                  context_.program.gpus,
                  bounds_.status(),
                  gpus_.memory()};
  status.quotas = memory_.quotas();
  status.gpus_missing = gpus_.missing().size();
  for (std::uint32_t k = 0; k < slots_->size(); ++k) {
    const SlotWorker& worker = (*workers_)[k];
    SlotStatus s;
    s.word = slots_->word(k);
    s.pinned = slots_->is_pinned(k);
    if (worker.process) {
      s.worker = worker.process->pid();
      s.jail = worker.jail;
      s.counters = worker.telemetry->counters();
    }
    if (s.word.held()) {
      s.owner = region_->owner(k);
      s.program = region_->program(k);
      s.claimed_for = log_->age(k);
    }
    status.counters += s.counters;
    status.slots.push_back(s);
  }
  return status;
}

}  // namespace host::broker
