// A VM's part of `ivgpu status`.
#include <algorithm>

#include "host/broker/vm/vm.h"

namespace host::broker {

std::size_t Vm::sessions() const {
  return static_cast<std::size_t>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.known.held(); }));
}

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
                  history_.counters(),
                  history_.ends(),
                  {},
                  context_.program.gpus,
                  bounds_.status(),
                  gpus_.memory()};
  status.quotas = memory_.quotas();
  status.gpus_missing = gpus_.missing().size();
  for (std::uint32_t k = 0; k < slots_.size(); ++k) {
    const Slot& slot = slots_[k];
    SlotStatus s{
        slot.known,       slot.worker ? slot.worker->pid() : 0, slot.worker ? slot.jail : WorkerJail{}, {}, {}, {}, {},
        slot.still_pinned};
    if (slot.known.held()) {
      s.owner = region_->owner(k);
      s.program = region_->program(k);
      s.claimed_for = log_->age(k);
    }
    if (slot.worker) s.counters = slot.telemetry->counters();
    status.counters += s.counters;
    status.slots.push_back(s);
  }
  return status;
}

}  // namespace host::broker
