// The memory of the host's GPUs as the broker gives it out (docs/design/029-memory-quotas.md): how much each has, what is
// promised of it, and what of it programs without a promise may have together. It also asks, twice a second, who holds
// what, while some VM has a quota and a worker.
//
// Invariant: unless the operator allows more (`overcommit`), what VMs may have of a GPU is together no more than it has,
// as soon as somebody has told how much that is.
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
#include "host/broker/config/config.h"
#include "host/broker/gpu/gpu_usage.h"
#include "host/broker/gpu/gpus.h"

namespace host::broker {

class MemoryLeases;

// A bound, if there is one, and what is given of it.
struct Pot {
  std::optional<std::uint64_t> limit;
  std::uint64_t given = 0;
  std::uint64_t room() const {
    if (!limit) return ~std::uint64_t{0};
    return *limit > given ? *limit - given : 0;
  }
};

struct GpuAccount {
  std::string name;           // a UUID, or where the kernel knows none a PCI address
  std::uint64_t total = 0;    // 0: nobody has told it yet
  std::uint64_t context = 0;  // what a worker takes before its session begins: as measured last, or as estimated
  bool context_measured = false;
  std::string missing;  // why nobody measures who holds what of it; "": it is measured
  bool missing_told = false, unread_told = false, overcommitted_told = false;
  Pot rest;  // of the VMs without a quota, together
};

class GpuAccounts {
 public:
  explicit GpuAccounts(EventLoop& loop) : loop_(loop) {}
  ~GpuAccounts();
  GpuAccounts(const GpuAccounts&) = delete;
  GpuAccounts& operator=(const GpuAccounts&) = delete;

  // `first_context`: what a worker takes of a GPU of which nothing has been measured.
  void measure_by(std::unique_ptr<GpuUsage> usage, std::uint64_t first_context);
  void allow_overcommit(bool allowed);
  // Asks, and waits for the answer, where some VM has a quota. For a broker that serves nobody yet.
  void look_first(const Config& config, const std::vector<VmGpus>& gpus);
  // What somebody has told of GPUs, at the start for one.
  void learn(const GpuUses& uses);
  void learn_total(GpuAccount& gpu, std::uint64_t total);

  // It stays where it is. "GPU-..." and "MIG-..." of one UUID are the same.
  GpuAccount& named(const std::string& name);
  const std::map<std::string, GpuAccount>& all() const { return accounts_; }

  // A VM's part, as long as the VM is served.
  void join(MemoryLeases& leases);
  void leave(MemoryLeases& leases);
  // Works out again what may be given: a quota is another, or somebody has joined.
  void plan();
  // Sees to it that somebody measures, where there is something to measure.
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
  std::map<std::string, GpuAccount> accounts_;  // by the letters of their names that count
  std::vector<MemoryLeases*> leases_;
  EventLoop::Id timer_ = 0;
};

// The names by which GPUs are asked for and shown, and by which the scheduler knows them: the same for all VMs.
std::string name_of(const Gpu& gpu);
// The letters of a name that count: the same for "GPU-..." and "MIG-..." of one UUID.
std::string key_of(const std::string& name);
std::string uuid_in_words(const std::uint8_t (&uuid)[16]);

// Whether the quotas of all VMs fit into their GPUs, as far as it is told how much these have, and are not below what a
// worker takes. `gpus`: of each VM. False if not, and `error` is one sentence.
bool quotas_fit(const Config& config, const std::vector<VmGpus>& gpus, const std::map<std::string, GpuAccount>& known,
                std::string& error);

}  // namespace host::broker
