#include "host/broker/alloc/memory_overhead.h"

#include <fmt/format.h>

#include <algorithm>

namespace host::broker {
namespace {

constexpr std::uint64_t overhead_allowance = WorkerHoldings::overhead_allowance;

std::uint64_t mebi(std::uint64_t bytes) { return bytes >> 20; }

}  // namespace

void MemoryOverhead::ready(std::uint32_t slot) {
  workers_[slot].on[0].recent.fill(holdings_.share(slot, 0).gpu->context);
}

void MemoryOverhead::before_measuring(std::set<std::string>& wanted) {
  for (std::uint32_t slot = 0; slot < workers_.size(); ++slot) {
    workers_[slot].was_ready = holdings_.is_ready(slot);
    for (unsigned device = 0; device < holdings_.devices(slot); ++device) {
      const MemoryShare& share = holdings_.share(slot, device);
      workers_[slot].on[device].taken_before = holdings_.taken(slot, device);
      if (shares_.is_bounded(share) && share.gpu->name != unknown_gpu) wanted.insert(share.gpu->name);
    }
  }
}

// Calls f(slot, device, use) for each worker's part of a GPU whose use was measured.
template <class F>
void MemoryOverhead::each_measured(const GpuUses& uses, F f) {
  for (std::uint32_t slot = 0; slot < workers_.size(); ++slot)
    for (unsigned device = 0; device < holdings_.devices(slot); ++device) {
      const auto use = uses.find(holdings_.share(slot, device).gpu->name);
      if (use != uses.end() && use->second.missing.empty()) f(slot, device, use->second);
    }
}

// Overheads are charged first, for all workers; only the rest becomes headroom.
bool MemoryOverhead::measured(const GpuUses& uses) {
  each_measured(uses, [&](auto slot, auto device, const GpuUse& use) { note(slot, device, use); });
  each_measured(uses, [&](auto slot, auto device, const GpuUse&) { cover(slot, device); });
  each_measured(uses, [&](auto slot, auto device, const GpuUse&) { add_overhead_allowance(slot, device); });
  bool doubtful = false;
  each_measured(uses, [&](auto slot, auto device, const GpuUse&) { doubtful = is_above(slot, device) || doubtful; });
  return doubtful;
}

// Use beyond the worker's own account is overhead.
void MemoryOverhead::note(std::uint32_t slot, unsigned device, const GpuUse& use) {
  const Worker& w = workers_[slot];
  Measured& its = workers_[slot].on[device];
  GpuAccount& gpu = *holdings_.share(slot, device).gpu;
  const auto process = use.processes.find(holdings_.process(slot));
  its.holds = process == use.processes.end() ? std::nullopt : std::optional(process->second);
  if (!its.holds) {
    if (w.was_ready && device == 0) gpu.missing = "it does not name the broker's workers";
    return;
  }
  const std::uint64_t claims =
      std::min(std::max(its.taken_before, holdings_.taken(slot, device)), holdings_.at(slot, device).reserved);
  its.recent[its.next++ % its.recent.size()] = *its.holds - std::min(*its.holds, claims);
  if (w.was_ready && device == 0 && events_.is_spare(slot)) gpu.context = *its.holds, gpu.context_measured = true;
}

// Returns the largest of the recent overheads. The account and the measurement are not read at one moment, so a single
// overhead may miss an allocation.
std::uint64_t MemoryOverhead::overhead_of(std::uint32_t slot, unsigned device) const {
  const auto& recent = workers_[slot].on[device].recent;
  const std::uint64_t most = *std::max_element(recent.begin(), recent.end());
  if (holdings_.is_ready(slot)) return most;
  return std::max(most, holdings_.share(slot, device).gpu->context);  // its context is being made
}

void MemoryOverhead::cover(std::uint32_t slot, unsigned device) {
  if (!workers_[slot].on[device].holds) return;
  const std::uint64_t overhead = overhead_of(slot, device);
  const WorkerHoldings::Holding& held = holdings_.at(slot, device);
  if (held.overhead > overhead + overhead_allowance) {
    holdings_.shrink_overhead(slot, device, overhead + overhead_allowance);
    events_.freed();
  } else if (held.overhead < overhead) {
    holdings_.grow_overhead(slot, device, overhead);
    if (held.overhead < overhead) events_.lacks_room(*held.share);  // its own unused lease may cover the rest
  }
}

void MemoryOverhead::add_overhead_allowance(std::uint32_t slot, unsigned device) {
  if (workers_[slot].on[device].holds)
    holdings_.grow_overhead(slot, device, overhead_of(slot, device) + overhead_allowance);
}

// True if the worker holds more than it was charged. The second time in a row ends it.
bool MemoryOverhead::is_above(std::uint32_t slot, unsigned device) {
  Measured& its = workers_[slot].on[device];
  const WorkerHoldings::Holding& held = holdings_.at(slot, device);
  holdings_.see_peak(*held.share);
  const std::uint64_t may_hold = held.reserved + held.overhead;
  its.above = its.holds && *its.holds > may_hold ? its.above + 1 : 0;
  if (its.above < 2) return its.above != 0;
  events_.holds_too_much(
      slot, fmt::format("it holds {} MiB of {}, and may hold {} MiB: the VM's gpu_memory is {} MiB", mebi(*its.holds),
                        held.share->gpu->name, mebi(may_hold), mebi(shares_.limit(*held.share))));
  return false;
}

}  // namespace host::broker
