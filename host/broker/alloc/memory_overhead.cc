// The measuring part of MemoryLeases (host/broker/alloc/memory_leases.h): computes what workers' drivers use beyond
// their leases, and ends workers that exceed their limit.
#include <fmt/format.h>

#include <algorithm>

#include "host/broker/alloc/memory_leases.h"

namespace host::broker {
namespace {

std::uint64_t mebi(std::uint64_t bytes) { return bytes >> 20; }

}  // namespace

void MemoryLeases::before_measuring(std::set<std::string>& wanted) {
  for (std::uint32_t slot = 0; slot < workers_.size(); ++slot) {
    Worker& w = workers_[slot];
    w.was_ready = w.is_ready;
    for (unsigned device = 0; device < w.devices; ++device) {
      Held& held = w.held[device];
      held.taken_before = taken_of(slot, device);
      const bool bounded = quota_ != 0 || held.share->gpu->rest.limit;
      if (bounded && held.share->gpu->name != unknown_gpu) wanted.insert(held.share->gpu->name);
    }
  }
}

// Calls f(slot, device, use) for each worker's part of a GPU whose use was measured.
template <class F>
void MemoryLeases::each_measured(const GpuUses& uses, F f) {
  for (std::uint32_t slot = 0; slot < workers_.size(); ++slot)
    for (unsigned device = 0; device < workers_[slot].devices; ++device) {
      const auto use = uses.find(workers_[slot].held[device].share->gpu->name);
      if (use != uses.end() && use->second.missing.empty()) f(slot, device, use->second);
    }
}

// Overheads are charged first, for all workers; only the rest becomes headroom.
bool MemoryLeases::measured(const GpuUses& uses) {
  each_measured(uses, [&](auto slot, auto device, const GpuUse& use) { note(slot, device, use); });
  each_measured(uses, [&](auto slot, auto device, const GpuUse&) { cover_overhead(slot, device); });
  each_measured(uses, [&](auto slot, auto device, const GpuUse&) { add_headroom(slot, device); });
  bool doubtful = false;
  each_measured(uses, [&](auto slot, auto device, const GpuUse&) { doubtful = is_above(slot, device) || doubtful; });
  return doubtful;
}

// Use beyond the worker's own account is overhead.
void MemoryLeases::note(std::uint32_t slot, unsigned device, const GpuUse& use) {
  const Worker& w = workers_[slot];
  Held& held = workers_[slot].held[device];
  GpuAccount& gpu = *held.share->gpu;
  const auto process = use.processes.find(w.process);
  held.holds = process == use.processes.end() ? std::nullopt : std::optional(process->second);
  if (!held.holds) {
    if (w.was_ready && device == 0) gpu.missing = "it does not name the broker's workers";
    return;
  }
  const std::uint64_t claims = std::min(std::max(held.taken_before, taken_of(slot, device)), held.lent);
  held.recent[held.next++ % held.recent.size()] = *held.holds - std::min(*held.holds, claims);
  if (w.was_ready && device == 0 && acts_.is_spare(slot)) gpu.context = *held.holds, gpu.context_measured = true;
}

// Returns the largest of the recent overheads. The account and the measurement are not read at one moment, so a single
// overhead may miss an allocation.
std::uint64_t MemoryLeases::overhead_of(std::uint32_t slot, const Held& held) const {
  const std::uint64_t most = *std::max_element(held.recent.begin(), held.recent.end());
  return workers_[slot].is_ready ? most : std::max(most, held.share->gpu->context);  // its context is being made
}

void MemoryLeases::cover_overhead(std::uint32_t slot, unsigned device) {
  Held& held = workers_[slot].held[device];
  if (!held.holds) return;
  const std::uint64_t overhead = overhead_of(slot, held);
  if (held.overhead > overhead + headroom) {
    take_back(*held.share, held.overhead - overhead - headroom);
    held.overhead = overhead + headroom;
    acts_.more_room();
  } else if (held.overhead < overhead) {
    grow(held, overhead);
    if (held.overhead < overhead) begin_round(*held.share, std::nullopt);  // its own unused lease may cover the rest
  }
}

void MemoryLeases::add_headroom(std::uint32_t slot, unsigned device) {
  Held& held = workers_[slot].held[device];
  if (held.holds) grow(held, overhead_of(slot, held) + headroom);
}

void MemoryLeases::grow(Held& held, std::uint64_t wanted) {
  if (wanted <= held.overhead) return;
  const std::uint64_t more = std::min(wanted - held.overhead, room(*held.share));
  give(*held.share, more);
  held.overhead += more;
}

// True if the worker holds more than it was charged. The second time in a row ends it.
bool MemoryLeases::is_above(std::uint32_t slot, unsigned device) {
  Held& held = workers_[slot].held[device];
  see_peak(*held.share);
  const std::uint64_t may_hold = held.lent + held.overhead;
  held.above = held.holds && *held.holds > may_hold ? held.above + 1 : 0;
  if (held.above < 2) return held.above != 0;
  const GpuAccount& gpu = *held.share->gpu;
  acts_.end(slot,
            fmt::format("it holds {} MiB of {}, and may hold {} MiB: the VM's gpu_memory is {} MiB", mebi(*held.holds),
                        gpu.name, mebi(may_hold), mebi(quota_ != 0 ? quota_ : gpu.rest.limit.value_or(0))));
  return false;
}

}  // namespace host::broker
