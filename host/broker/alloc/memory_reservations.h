// The GPU memory that one VM's workers may hold. Each worker leases memory as it needs it, within the VM's quota, and
// the broker compares that with measurements (docs/design/029-memory-quotas.md).
//
// A worker is charged its lease, within which its own account stays, and its overhead, which its driver uses besides.
// The broker measures the overhead, or estimates it. If a request does not fit, the broker asks the VM's other workers
// for the unused parts of their leases. The request waits for their answers, at most 100 ms.
//
// Trust: a worker's messages are hostile. The broker checks every number against the lease, and keeps one open request
// per worker. It trusts the worker's own account (`taken`) in one direction only. Use claimed beyond the lease does not
// count; use that is not claimed counts as overhead. A worker that measurably exceeds lease plus overhead twice in a
// row is ended.
//
// Invariant: for each GPU the budget's `given` equals the sum of leases and overheads. A worker's part returns to the
// budget only when its process has ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/base/process/control.h"
#include "host/broker/alloc/gpu_accounts.h"
#include "host/broker/alloc/memory_overhead.h"
#include "host/broker/alloc/memory_shares.h"
#include "host/broker/alloc/worker_holdings.h"

namespace host::broker {

struct QuotaStatus {
  std::string gpu;
  std::uint64_t quota = 0, used = 0, peak = 0;  // bytes; a quota of 0: none
  std::string missing;                          // GpuAccount::missing
};

class MemoryReservations {
 public:
  // Actions on the workers; `slot` identifies a worker.
  struct Acts {
    std::function<bool(std::uint32_t slot, const worker::MemoryMessage&)> send;
    std::function<void(std::uint32_t slot, const std::string& why)> end;
    // Bytes in use by the worker's own account.
    std::function<std::uint64_t(std::uint32_t slot, unsigned device)> taken;
    // True if no program uses the worker yet.
    std::function<bool(std::uint32_t slot)> is_spare;
    // Calls round_over() after this time; each call replaces the one before.
    std::function<void(Clock::duration)> wake;
    // Called when memory has become available.
    std::function<void()> more_headroom;
  };
  static constexpr std::uint64_t chunk = std::uint64_t{64} << 20;           // granted at once if there is room
  static constexpr std::uint64_t unbounded_chunk = std::uint64_t{1} << 30;  // the same for a VM without a limit
  static constexpr std::uint64_t overhead_allowance = WorkerHoldings::overhead_allowance;
  static constexpr auto answer_patience = std::chrono::milliseconds(100);

  MemoryReservations(GpuAccounts& accounts, std::size_t slots, Acts acts);
  ~MemoryReservations();
  MemoryReservations(const MemoryReservations&) = delete;
  MemoryReservations& operator=(const MemoryReservations&) = delete;

  // Sets the VM's quota of each GPU (0: none) and its GPUs. Workers that hold more keep it.
  void bound(std::uint64_t quota, const VmGpus& gpus);
  std::uint64_t promised(const GpuAccount& gpu) const { return shares_.promised(gpu); }

  // True if another worker may start. `wanted`: a program waits for it, so the broker asks the other workers for unused
  // memory, and calls more_headroom() if they return some.
  bool may_start(bool wanted);
  // Why may_start() refused, for the log.
  std::string why_not() const;
  // A worker's memory on the GPU where it makes its first context.
  std::uint64_t context_bytes() const { return shares_.context_bytes(); }

  // Events in a worker's life, in this order.
  void started(std::uint32_t slot, pid_t process);
  void ready(std::uint32_t slot, const worker::ReadyMessage& reported);
  // False if the message breaks the protocol.
  [[nodiscard]] bool heard(std::uint32_t slot, const worker::MemoryMessage& message);
  void gone(std::uint32_t slot);
  // The worker's lease of a device, which the next broker passes to adopt().
  std::uint64_t reserved(std::uint32_t slot, unsigned device) const;
  // Replaces started() and ready() for an earlier broker's worker; `reserved` is its lease of each device.
  void adopt(std::uint32_t slot, pid_t process, const worker::ReadyMessage& reported,
             const std::uint64_t (&reserved)[ring::max_devices]);

  void round_over();

  // Adds the GPUs that must be measured to `wanted`.
  void before_measuring(std::set<std::string>& wanted) { overhead_.before_measuring(wanted); }
  // True if a worker exceeds its limit and must be measured again soon.
  bool measured(const GpuUses& uses) { return overhead_.measured(uses); }

  std::vector<QuotaStatus> status();
  // Bytes of a GPU that the worker of each slot holds.
  std::vector<std::uint64_t> held(const std::string& gpu) const;

 private:
  struct Question {
    std::uint32_t slot;
    worker::MemoryMessage message;
  };
  // A round asks workers for the unused parts of their leases.
  struct Round {
    MemoryShare* share;
    std::uint32_t sequence;
    std::set<std::uint32_t> waiting;
  };

  std::uint64_t chunk_of(const MemoryShare& share) const;
  void drop_question(std::uint32_t slot);
  void reserve(std::uint32_t slot, const worker::MemoryMessage& asked);
  bool try_to_reserve(std::uint32_t slot, const worker::MemoryMessage& asked);
  void refuse(std::uint32_t slot, const worker::MemoryMessage& asked);
  void report_headroom(std::uint32_t slot, const worker::MemoryMessage& asked);
  bool returned(std::uint32_t slot, const worker::MemoryMessage& reported);
  bool begin_round(MemoryShare& share, std::optional<std::uint32_t> for_slot);
  void answer_questions(const MemoryShare& collected);

  GpuAccounts& accounts_;
  const Acts acts_;
  MemoryShares shares_;
  WorkerHoldings holdings_;
  MemoryOverhead overhead_;
  std::deque<Question> questions_;
  std::optional<Round> round_;
  std::uint32_t sequence_ = 0;
  bool start_wanted_ = false;  // a waiting program's worker needs what this round returns
};

}  // namespace host::broker
