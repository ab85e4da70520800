// A VM's part of `ivgpu status`.
#include <algorithm>

#include "host/broker/vm/vm.h"

namespace host::broker {

std::size_t Vm::sessions() const {
  return static_cast<std::size_t>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.known.held(); }));
}

BoundsStatus Vm::bounds() const {
  BoundsStatus bounds{.session_image_bytes = options_.session_image_bytes,
                      .session_objects = options_.session_objects,
                      .memory_max = options_.memory_max,
                      .pids_max = options_.pids_max,
                      .cpu_max = options_.cpu_max,
                      .group = group_ ? group_->path() : "",
                      .missing = program_.groups != nullptr ? program_.groups->missing() : "",
                      .use = {}};
  if (group_) bounds.use = group_->use();
  return bounds;
}

VmStatus Vm::status() const {
  VmStatus status{options_.name,
                  transport_->socket(),
                  transport_->memory(),
                  static_cast<std::uint64_t>(options_.region_size),
                  region_->slot_bytes(),
                  options_.jail,
                  options_.spin_threads,
                  options_.spin_us,
                  options_.wait_spin_ms,
                  transport_->connections(),
                  ended_,
                  ends_,
                  {},
                  program_.gpus,
                  bounds(),
                  gpu_memory_};
  if (memory_) status.quotas = memory_->status();
  status.gpus_missing = presence_.missing().size();
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
