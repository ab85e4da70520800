#include "host/broker/alloc/memory_shares.h"

#include <optional>

namespace host::broker {

void MemoryShares::bound(std::uint64_t quota, const VmGpus& gpus) {
  const bool had = quota_ != 0, has = quota != 0;
  gpus_ = gpus;
  for (auto& [gpu, share] : shares_) share.is_seen = false;
  for (const Gpu& gpu : gpus.list) of(accounts_.named(name_of(gpu))).is_seen = true;
  // Memory granted from the shared rest now counts against the VM's own quota, or the other way round.
  for (auto& [gpu, share] : shares_) {
    if (had && !has) gpu->rest.given += share.own.given;
    if (!had && has) gpu->rest.given -= share.own.given;
    share.own.limit = has ? std::optional(quota) : std::nullopt;
  }
  quota_ = quota;
}

std::uint64_t MemoryShares::promised(const GpuAccount& gpu) const {
  for (const auto& [account, share] : shares_)
    if (account == &gpu && (share.is_seen || share.own.given != 0)) return quota_;
  return 0;
}

MemoryShare& MemoryShares::of(GpuAccount& gpu) {
  MemoryShare& share = shares_[&gpu];
  if (share.gpu == nullptr) {
    share.gpu = &gpu;
    if (quota_ != 0) share.own.limit = quota_;
  }
  return share;
}

GpuAccount& MemoryShares::first_gpu() const {
  return accounts_.named(gpus_.list.empty() ? unknown_gpu : name_of(gpus_.list.front()));
}

MemoryShare& MemoryShares::first() { return of(first_gpu()); }

std::uint64_t MemoryShares::context_bytes() const { return first_gpu().context; }

std::uint64_t MemoryShares::limit(const MemoryShare& share) const {
  return quota_ != 0 ? quota_ : share.gpu->rest.limit.value_or(0);
}

bool MemoryShares::is_bounded(const MemoryShare& share) const { return quota_ != 0 || share.gpu->rest.limit; }

std::uint64_t MemoryShares::headroom(const MemoryShare& share) const {
  return quota_ != 0 ? share.own.headroom() : share.gpu->rest.headroom();
}

void MemoryShares::give(MemoryShare& share, std::uint64_t bytes) {
  share.own.given += bytes;
  if (quota_ == 0) share.gpu->rest.given += bytes;
}

void MemoryShares::take_back(MemoryShare& share, std::uint64_t bytes) {
  share.own.given -= bytes;
  if (quota_ == 0) share.gpu->rest.given -= bytes;
}

}  // namespace host::broker
