#include "host/broker/alloc/worker_holdings.h"

#include <algorithm>

namespace host::broker {

// ---- a worker's life -----------------------------------------------------------------------------------------------

void WorkerHoldings::started(std::uint32_t slot, pid_t process) {
  Worker& w = workers_[slot];
  w = {};
  w.process = process;
  w.devices = 1;
  Holding& held = w.held[0];
  held.share = &shares_.first();
  const GpuAccount& gpu = *held.share->gpu;
  held.overhead = std::min(gpu.context + (gpu.missing.empty() ? overhead_allowance : 0), shares_.headroom(*held.share));
  shares_.give(*held.share, held.overhead);
  see_peak(*held.share);
}

void WorkerHoldings::ready(std::uint32_t slot, const worker::ReadyMessage& reported, GpuAccounts& accounts) {
  Worker& w = workers_[slot];
  w.is_ready = true;
  w.devices = std::clamp<unsigned>(reported.gpus, 1, ring::max_devices);
  for (unsigned device = 0; device < std::min(reported.gpus, w.devices); ++device) {
    GpuAccount& gpu = accounts.named(uuid_in_words(reported.gpu[device].uuid));
    accounts.learn_total(gpu, std::min(reported.gpu[device].memory, absurd));
    MemoryShare& share = shares_.of(gpu);
    share.is_seen = true;
    move_to(w.held[device], share);
  }
}

void WorkerHoldings::move_to(Holding& held, MemoryShare& share) {
  if (held.share == &share) return;
  const std::uint64_t bytes = held.reserved + held.overhead;
  if (held.share != nullptr) shares_.take_back(*held.share, bytes);
  held.share = &share;
  shares_.give(share, bytes);
}

void WorkerHoldings::release(std::uint32_t slot) {
  Worker& w = workers_[slot];
  for (unsigned device = 0; device < w.devices; ++device)
    if (Holding& held = w.held[device]; held.share != nullptr)
      shares_.take_back(*held.share, held.reserved + held.overhead);
  w = {};
}

// ---- leases and overheads ------------------------------------------------------------------------------------------

void WorkerHoldings::reserve(std::uint32_t slot, unsigned device, std::uint64_t bytes) {
  Holding& held = workers_[slot].held[device];
  held.reserved += bytes;
  shares_.give(*held.share, bytes);
  see_peak(*held.share);
}

void WorkerHoldings::take_back(std::uint32_t slot, unsigned device, std::uint64_t bytes) {
  Holding& held = workers_[slot].held[device];
  see_peak(*held.share);
  held.reserved -= bytes;
  shares_.take_back(*held.share, bytes);
}

void WorkerHoldings::grow_overhead(std::uint32_t slot, unsigned device, std::uint64_t wanted) {
  Holding& held = workers_[slot].held[device];
  if (wanted <= held.overhead) return;
  const std::uint64_t more = std::min(wanted - held.overhead, shares_.headroom(*held.share));
  shares_.give(*held.share, more);
  held.overhead += more;
}

void WorkerHoldings::shrink_overhead(std::uint32_t slot, unsigned device, std::uint64_t wanted) {
  Holding& held = workers_[slot].held[device];
  shares_.take_back(*held.share, held.overhead - wanted);
  held.overhead = wanted;
}

// ---- use -----------------------------------------------------------------------------------------------------------

std::uint64_t WorkerHoldings::taken(std::uint32_t slot, unsigned device) const {
  return std::min(taken_(slot, device), at(slot, device).reserved);
}

std::uint64_t WorkerHoldings::used_by(std::uint32_t slot, const MemoryShare& share) const {
  std::uint64_t sum = 0;
  for (unsigned device = 0; device < devices(slot); ++device)
    if (const Holding& held = at(slot, device); held.share == &share) sum += held.overhead + taken(slot, device);
  return sum;
}

std::uint64_t WorkerHoldings::used(const MemoryShare& share) const {
  std::uint64_t sum = 0;
  for (std::uint32_t slot = 0; slot < slots(); ++slot) sum += used_by(slot, share);
  return sum;
}

void WorkerHoldings::see_peak(MemoryShare& share) const { share.peak = std::max(share.peak, used(share)); }

}  // namespace host::broker
