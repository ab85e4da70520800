// One VM's share of each GPU's memory: its quota, and how much of it is given out.
//
// MemoryReservations owns it; WorkerHoldings and MemoryOverhead give and take through it. A VM with a quota has a budget of its
// own for each GPU; VMs without one draw from the GPU's common budget (GpuAccount::rest). Thread: the broker's loop.
//
// Invariant: `own.given` of a share is the sum that its VM's workers hold of that GPU. Without a quota, `rest.given` contains it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "host/broker/alloc/gpu_accounts.h"

namespace host::broker {

// Stands for a GPU that neither the kernel nor a worker has named yet.
inline constexpr const char* unknown_gpu = "unknown";

// The VM's share of a GPU.
struct MemoryShare {
  GpuAccount* gpu = nullptr;
  Budget own;
  std::uint64_t peak = 0;
  bool is_seen = false;  // the GPU is visible to the VM's guests
};

class MemoryShares {
 public:
  explicit MemoryShares(GpuAccounts& accounts) : accounts_(accounts) {}

  // The VM's quota of each GPU, 0 for none, and its GPUs. A first or last quota moves the given bytes
  // between the two budgets.
  void bound(std::uint64_t quota, const VmGpus& gpus);
  std::uint64_t quota() const { return quota_; }
  std::uint64_t promised(const GpuAccount& gpu) const;

  // The reference stays valid.
  MemoryShare& of(GpuAccount& gpu);
  // Of the GPU on which a worker makes its first context.
  MemoryShare& first();
  std::uint64_t context_bytes() const;
  std::map<GpuAccount*, MemoryShare>& all() { return shares_; }
  const std::map<GpuAccount*, MemoryShare>& all() const { return shares_; }

  // The quota, or what VMs without one may have together; 0 without a bound.
  std::uint64_t limit(const MemoryShare& share) const;
  bool is_bounded(const MemoryShare& share) const;
  std::uint64_t headroom(const MemoryShare& share) const;
  void give(MemoryShare& share, std::uint64_t bytes);
  void take_back(MemoryShare& share, std::uint64_t bytes);

 private:
  GpuAccount& first_gpu() const;

  GpuAccounts& accounts_;
  std::uint64_t quota_ = 0;
  VmGpus gpus_;
  std::map<GpuAccount*, MemoryShare> shares_;
};

}  // namespace host::broker
