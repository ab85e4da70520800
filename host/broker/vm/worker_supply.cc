#include "host/broker/vm/worker_supply.h"

#include <algorithm>

namespace host::broker {

using ring::SlotState;

void WorkerSupply::count_waiting() {
  const std::uint32_t wanted = region_.header()[&ring::RegionHeader::wanted].load(std::memory_order_acquire);
  const std::uint32_t more = wanted - wanted_seen_;
  wanted_seen_ = wanted;
  demand_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{demand_} + more, slots_.size()));
  if (more > 0 && is_full()) log_.all_slots_taken();
}

// True if no slot is left for another program.
bool WorkerSupply::is_full() const {
  for (std::uint32_t k = 0; k < slots_.size(); ++k)
    if (!slots_.word(k).held() && !slots_.is_pinned(k)) return false;
  return true;
}

void WorkerSupply::serve_one() {
  if (demand_ > 0) --demand_;
}

void WorkerSupply::refill() {
  if (context_.stopping || pace_.is_waiting()) return;
  if (slots_.count(SlotState::Starting) + slots_.count(SlotState::Ready) >= std::max(spare(), demand_)) return;
  const auto empty = slots_.find(SlotState::Empty);
  if (!empty) return;
  if (!mps_.may_start()) return;
  if (!memory_.has_room(demand_)) return;
  if (!pace_.may_start()) return;
  if (!workers_.start(*empty)) return;
  // A start takes about a millisecond. The next start waits for another loop iteration, so that no client waits for
  // many.
  pace_.try_after(Span::zero());
}

void WorkerSupply::end_surplus() {
  demand_ = 0;
  end_unclaimed(spare());
}

void WorkerSupply::apply(bool new_sessions) {
  const std::uint32_t keep = new_sessions ? 0 : std::max(spare(), demand_);
  end_starting(keep - std::min(keep, slots_.count(SlotState::Ready)));
  end_unclaimed(keep);
  refill();
}

void WorkerSupply::end_all_unclaimed() {
  end_starting(0);
  end_unclaimed(0);
}

void WorkerSupply::end_unclaimed(std::uint32_t keep) {
  std::uint32_t ready = slots_.count(SlotState::Ready);
  end_unclaimed_where([&](std::uint32_t k) {
    if (ready <= keep && !region_.touched(k)) return false;
    --ready;
    return true;
  });
}

void WorkerSupply::end_unclaimed_where(const std::function<bool(std::uint32_t)>& ends) {
  for (std::uint32_t k = 0; k < slots_.size(); ++k)
    if (slots_.state(k) == SlotState::Ready && ends(k) && slots_.move(k, SlotState::Starting)) workers_.end_unused(k);
}

// Ends workers that are not ready yet, except `keep`.
void WorkerSupply::end_starting(std::uint32_t keep) {
  for (std::uint32_t k = 0; k < slots_.size(); ++k) {
    if (slots_.state(k) != SlotState::Starting || !workers_[k].process || workers_[k].surplus) continue;
    if (keep > 0) {
      --keep;
      continue;
    }
    workers_.end_unused(k);
  }
}

void WorkerSupply::adopt(const SavedVm& was) {
  wanted_seen_ = was.wanted_seen;
  demand_ = std::min(was.demand, was.slots);
}

}  // namespace host::broker
