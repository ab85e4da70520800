// A VM's workers: start ahead, ready, end, and the effect of their end on their slots.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "host/broker/vm/vm.h"

namespace host::broker {
namespace {

using ring::SlotState;

}  // namespace

void Vm::refill() {
  if (context_.stopping || pace_.is_waiting()) return;
  const auto target = std::max(static_cast<std::uint32_t>(context_.options.spare), demand_);
  if (slots_->count(SlotState::Starting) + slots_->count(SlotState::Ready) >= target) return;
  const auto empty = slots_->find(SlotState::Empty);
  if (!empty) return;
  if (!mps_.may_start()) return;
  if (!memory_.has_room(demand_)) return;
  if (!pace_.may_start()) return;
  if (!workers_->start(*empty)) return;
  // A start takes about a millisecond. The next start waits for another loop iteration, so that no client waits for
  // many.
  pace_.try_after(Span::zero());
}

// The last guest has gone: ends the workers started for waiting guests, but keeps `spare` workers that guests have not
// written into.
void Vm::end_surplus() {
  demand_ = 0;
  end_unclaimed(static_cast<std::uint32_t>(context_.options.spare));
}

// Ends ready workers without a session, except `keep`.
void Vm::end_unclaimed(std::uint32_t keep) {
  std::uint32_t ready = slots_->count(SlotState::Ready);
  end_unclaimed_where([&](std::uint32_t k) {
    if (ready <= keep && !region_->touched(k)) return false;
    --ready;
    return true;
  });
}

// A worker that a guest has claimed meanwhile stays.
void Vm::end_unclaimed_where(const std::function<bool(std::uint32_t)>& ends) {
  for (std::uint32_t k = 0; k < slots_->size(); ++k) {
    if (slots_->state(k) != SlotState::Ready || !ends(k) || !slots_->move(k, SlotState::Starting)) continue;
    workers_->end_unused(k);
  }
}

// Ends workers that are not ready yet, except `keep`.
void Vm::end_starting(std::uint32_t keep) {
  for (std::uint32_t k = 0; k < slots_->size(); ++k) {
    const SlotWorker& worker = (*workers_)[k];
    if (slots_->state(k) != SlotState::Starting || !worker.process || worker.surplus) continue;
    if (keep > 0) {
      --keep;
      continue;
    }
    workers_->end_unused(k);
  }
}

void Vm::when_warm(std::function<void()> warm) {
  pace_.when_warm(std::move(warm));
  if (context_.options.spare == 0 || persistence_.has_adopted()) pace_.report_warm();
}

// A session's program gets the driver's own error from its next call. Spare workers are lost as well, which no program
// would notice before it claims one.
void Vm::on_mps_lost(const std::string& why) {
  if (context_.stopping) return;
  spdlog::warn("{}: {}; {} session(s) get the driver's error and end within {} s, and fresh workers start after them",
               context_.options.name, why, sessions(), MpsRegistration::grace.count());
  end_starting(0);
  end_unclaimed(0);
}

// Ends all workers: none has started since the loss.
void Vm::end_lost_sessions() {
  for (std::uint32_t k = 0; k < slots_->size(); ++k) {
    if ((*workers_)[k].process) workers_->end_session(k, "MPS has lost all clients of its GPU");
  }
}

}  // namespace host::broker
