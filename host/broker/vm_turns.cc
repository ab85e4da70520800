// A VM's part of the turns on its GPUs: its share, and which of its workers are looked at by whoever looks for work without
// a turn (host/broker/turn_watch.h), or tells of the time that they have (host/broker/work_samples.h).
#include "host/broker/vm.h"

namespace host::broker {

turns::Scheduler::Share Vm::share() const {
  return {.weight = static_cast<double>(options_.weight), .latency = options_.latency};
}

// A worker makes its context before a program claims it, and may end its work after that has released it; neither takes
// turns.
void Vm::add_watched(std::vector<TurnWatch::Worker>& all) const {
  for (const Slot& slot : slots_)
    if (slot.worker && slot.turns && slot.known.state == ring::SlotState::Claimed)
      all.push_back({slot.turns->client(), slot.worker->pid(), slot.turns->sure()});
}

// NVML's samples name the server of MPS, and none of its clients.
void Vm::watch_session() {
  if (mps_) return mps_->watch();
  if (program_.samples != nullptr) program_.samples->watch();
}

void Vm::add_workers(WorkSamples::Workers& all) const {
  for (const Slot& slot : slots_)
    if (slot.worker) all.vm_of[slot.worker->pid()] = turns_vm_;
  if (mps_ || sessions() == 0) return;
  for (const Gpu& gpu : program_.gpus.list) all.gpus.insert(name_of(gpu));
}

bool Vm::end_for_turns(turns::Scheduler::Client client, const std::string& why) {
  for (const Slot& slot : slots_) {
    if (!slot.worker || !slot.turns || slot.turns->client() != client) continue;
    if (slot.worker->is_killed()) return true;  // and dies yet, which a busy machine takes its time for
    ++ended_for_turns_;
    slot.worker->kill_now(why.c_str());
    return true;
  }
  return false;
}

}  // namespace host::broker
