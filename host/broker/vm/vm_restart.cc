// A VM across the broker's restart: what is kept for the next broker, and how that broker adopts it
// (docs/design/034-restart.md). If any part of a VM is missing, or differs from what this broker would have made, its
// sessions end and nothing of it is adopted.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "host/broker/vm/vm.h"

namespace host::broker {
namespace {

using ring::SlotState;

}  // namespace

// ---- keeping -------------------------------------------------------------------------------------------------------

void Vm::save(std::uint32_t k, SavedSlot& to) const {
  slots_->save(k, to);
  workers_->save(k, to);
  log_->save(k, to);
  memory_.save(k, to);
}

// ---- adopting ------------------------------------------------------------------------------------------------------

void Vm::go_on_with(const SavedVm& saved) {
  heartbeat_->adopt();
  wanted_seen_ = saved.wanted_seen;
  demand_ = std::min(saved.demand, saved.slots);
  for (std::uint32_t k = 0; k < slots_->size(); ++k) {
    slots_->adopt(k, saved.slot[k]);
    log_->adopt(k, saved.slot[k]);
    workers_->adopt(k, saved.slot[k]);
  }
  for (std::uint32_t k = 0; k < slots_->size(); ++k) slots_->look_at(k);  // see what guests did meanwhile
  for (std::uint32_t k = 0; k < slots_->size(); ++k) workers_->resolve(k);
  look_at_wanted();
  questions_->go_on();
  if (sessions() > 0) mps_.watch();
  // Unclaimed workers have the old program and configuration; new ones replace them.
  end_unclaimed(0);
  heartbeat_->beat();
  heartbeat_->beat_while_needed();
  spdlog::info("{}: {} session(s) and {} connection(s) of before the restart go on", context_.options.name, sessions(),
               transport_->connections());
}

}  // namespace host::broker
