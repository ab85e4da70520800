// The broker's account of GPU memory (docs/design/029-memory-quotas.md): each GPU's size, the quotas promised of it,
// and the rest, which the VMs without a quota share. While a VM is bounded and has a worker, it measures twice a second
// how much each worker holds.
//
// Invariant: once a GPU's size is known, the VMs' quotas do not exceed it together, unless `overcommit` allows it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/log_limiter.h"
#include "host/base/result.h"
#include "host/broker/config/config.h"
#include "host/broker/gpu/gpu_usage.h"
#include "host/broker/gpu/gpus.h"

namespace host::broker {

class MemoryReservations;

// An amount of memory with an optional limit.
struct Budget {
  std::optional<std::uint64_t> limit;
  std::uint64_t given = 0;
  std::uint64_t headroom() const {
    if (!limit) return ~std::uint64_t{0};
    return *limit > given ? *limit - given : 0;
  }
};

struct GpuAccount {
  std::string name;           // the UUID, or the PCI address if the kernel knows no UUID
  std::uint64_t total = 0;    // bytes; 0: not known yet
  std::uint64_t context = 0;  // memory of a worker before its session begins: last measured, or estimated
  bool context_measured = false;
  std::string missing;  // why the workers' use of it cannot be measured; "": it is measured
  bool missing_reported = false, unread_reported = false, overcommitted_reported = false;
  Budget rest;  // shared by the VMs without a quota
};

class GpuAccounts {
 public:
  explicit GpuAccounts(EventLoop& loop) : loop_(loop) {}
  ~GpuAccounts();
  GpuAccounts(const GpuAccounts&) = delete;
  GpuAccounts& operator=(const GpuAccounts&) = delete;

  // `first_context`: the estimate for a GPU on which no worker has been measured.
  void measure_by(std::unique_ptr<GpuUsage> usage, std::uint64_t first_context);
  void allow_overcommit(bool allowed);
  // Queries the GPUs of VMs with a quota, and blocks until the answer. Only for a broker that serves no VM yet.
  void look_first(const Config& config, const std::vector<VmGpus>& gpus);
  // Takes over the sizes of GPUs from a measurement.
  void learn(const GpuUses& uses);
  void learn_total(GpuAccount& gpu, std::uint64_t total);

  // The reference stays valid. "GPU-..." and "MIG-..." of one UUID name the same account.
  GpuAccount& named(const std::string& name);
  const std::map<std::string, GpuAccount>& all() const { return accounts_; }

  // Adds or removes a VM's leases while the broker serves the VM.
  void join(MemoryReservations& leases);
  void leave(MemoryReservations& leases);
  // Recomputes the limits, after a quota has changed or a VM has joined.
  void plan();
  // Starts the periodic measurement; it stops by itself when there is nothing to measure.
  void watch();

 private:
  void plan(GpuAccount& gpu);
  void measure();
  void measured(const GpuUses& uses);
  void measure_after(Clock::duration delay);

  EventLoop& loop_;
  std::unique_ptr<GpuUsage> usage_;
  std::uint64_t first_context_ = 0;
  bool overcommit_ = false;
  std::map<std::string, GpuAccount> accounts_;  // by key_of() of their names
  std::vector<MemoryReservations*> leases_;
  EventLoop::Id timer_ = 0;
};

// The name of a GPU in queries, in output and for the scheduler: the same for all VMs.
std::string name_of(const Gpu& gpu);
// The UUID without its prefix, so that "GPU-..." and "MIG-..." of one UUID are equal; other names as they are.
std::string key_of(const std::string& name);
std::string uuid_in_words(const std::uint8_t (&uuid)[16]);

// An error, one sentence, unless the quotas of all VMs fit into their GPUs, as far as their sizes are known, and each
// quota holds a context. `gpus` has an entry per VM.
Result<void> quotas_fit(const Config& config, const std::vector<VmGpus>& gpus,
                        const std::map<std::string, GpuAccount>& known);

}  // namespace host::broker
