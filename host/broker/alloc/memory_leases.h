// What the workers of one VM may hold of GPUs' memory: lent to each as it asks, bounded by the VM's quota, and held
// against what is measured (docs/design/029-memory-quotas.md).
//
// A worker has of each GPU what it was lent, which its own account keeps within, and what its driver takes beside: the
// overhead, which the broker measures, or estimates where nobody measures. Both are given of the VM's pot. When there is
// not enough for a question, the VM's other workers are asked for what they do not use, and the question waits for them,
// 100 ms at most.
//
// Trust: a worker's words are hostile. Its numbers are held against what it was lent; it has one question open at most;
// its own account (`taken`) is believed in one direction only: what it claims to hold beyond its lease does not count, and
// what it claims not to hold is counted as overhead. What it holds by measurement beyond lease and overhead, twice in a
// row, ends it.
//
// Invariant: of each GPU, the sum of leases and overheads is what the pot has given. A worker's part comes back when its
// process has gone, and not before.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/base/process/control.h"
#include "host/broker/alloc/gpu_accounts.h"

namespace host::broker {

struct QuotaStatus {
  std::string gpu;
  std::uint64_t quota = 0, used = 0, peak = 0;  // bytes; a quota of 0: there is none
  std::string missing;                          // as GpuAccount's
};

// A GPU that neither the kernel nor a worker has named yet.
inline constexpr const char* unknown_gpu = "unknown";

class MemoryLeases {
 public:
  // What it has done to workers; `slot` names one.
  struct Acts {
    std::function<bool(std::uint32_t slot, const worker::MemoryMessage&)> send;
    std::function<void(std::uint32_t slot, const std::string& why)> end;
    // By its own account.
    std::function<std::uint64_t(std::uint32_t slot, unsigned device)> taken;
    // No program has it yet.
    std::function<bool(std::uint32_t slot)> is_spare;
    // Call round_over() after so long; each takes the place of the one before.
    std::function<void(Clock::duration)> wake;
    // There is more room than there was.
    std::function<void()> more_room;
  };
  static constexpr std::uint64_t chunk = std::uint64_t{64} << 20;           // lent at once where there is room
  static constexpr std::uint64_t unbounded_chunk = std::uint64_t{1} << 30;  // the same, of a VM that nothing bounds
  // Beside what a worker's driver holds, so much may it take before it is measured again: a kernel's code, say.
  static constexpr std::uint64_t headroom = std::uint64_t{64} << 20;
  static constexpr auto answer_patience = std::chrono::milliseconds(100);

  MemoryLeases(GpuAccounts& accounts, std::size_t slots, Acts acts);
  ~MemoryLeases();
  MemoryLeases(const MemoryLeases&) = delete;
  MemoryLeases& operator=(const MemoryLeases&) = delete;

  // The VM's quota of each GPU, 0 for none, and its GPUs. Takes nothing away from workers that have more.
  void bound(std::uint64_t quota, const VmGpus& gpus);
  std::uint64_t promised(const GpuAccount& gpu) const;

  // Whether another worker may be started. `wanted`: a program waits for it, so the others are asked for what they do not
  // use, and more_room() is called if that helps.
  bool may_start(bool wanted);
  // Why not, for the log.
  std::string why_not() const;
  // Of the GPU on which a worker makes its first context.
  std::uint64_t context_bytes() const;

  // A worker's life.
  void started(std::uint32_t slot, pid_t process);
  void ready(std::uint32_t slot, const worker::ReadyMessage& said);
  // False: no worker says that.
  bool heard(std::uint32_t slot, const worker::MemoryMessage& message);
  void gone(std::uint32_t slot);
  // What it was lent of a device, for the next broker's adopt().
  std::uint64_t lent(std::uint32_t slot, unsigned device) const;
  // Instead of started() and ready(): it was an earlier broker's, which has lent it this much of each device.
  void adopt(std::uint32_t slot, pid_t process, const worker::ReadyMessage& said,
             const std::uint64_t (&lent)[ring::max_devices]);

  void round_over();

  // The names of the GPUs whose use counts here.
  void before_measuring(std::set<std::string>& wanted);
  // True: somebody has more than he may, which is to be looked at again soon.
  bool measured(const GpuUses& uses);

  std::vector<QuotaStatus> status();
  // What the worker of each slot has of a GPU, in bytes.
  std::vector<std::uint64_t> held(const std::string& gpu) const;

 private:
  // A VM's part of a GPU.
  struct Share {
    GpuAccount* gpu = nullptr;
    Pot own;
    std::uint64_t peak = 0;
    bool is_seen = false;  // the VM's guests see the GPU
  };
  // A worker's part of a device.
  struct Held {
    Share* share = nullptr;
    std::uint64_t lent = 0, overhead = 0;
    std::optional<std::uint64_t> holds;  // as measured last; nothing: it was not named
    std::uint64_t taken_before = 0;      // before measuring, by its own account
    std::array<std::uint64_t, 4>
        recent{};  // the overheads that were measured last: an allocation may lie between two looks
    std::size_t next = 0;
    unsigned above = 0;  // how often in a row it was above what it may have
  };
  struct Worker {
    pid_t process = 0;                         // 0: there is none
    bool is_ready = false, was_ready = false;  // the latter: when measuring began
    std::array<Held, ring::max_devices> held;
    unsigned devices = 0;
  };
  struct Question {
    std::uint32_t slot;
    worker::MemoryMessage message;
  };
  // The workers that are asked for what they do not use.
  struct Round {
    Share* share;
    std::uint32_t sequence;
    std::set<std::uint32_t> waiting;
  };

  Share& share_of(GpuAccount& gpu);
  Share& first_share();
  std::uint64_t room(const Share& share) const;
  std::uint64_t chunk_of(const Share& share) const;
  void give(Share& share, std::uint64_t bytes);
  void take_back(Share& share, std::uint64_t bytes);
  std::uint64_t taken_of(std::uint32_t slot, unsigned device) const;
  std::uint64_t used(const Share& share) const;
  std::uint64_t held_by(std::uint32_t slot, const Share& share) const;
  void see_peak(Share& share);

  void release(std::uint32_t slot);
  void move_to(Held& held, Share& share);
  void drop_question(std::uint32_t slot);
  void borrow(std::uint32_t slot, const worker::MemoryMessage& asked);
  bool try_to_lend(std::uint32_t slot, const worker::MemoryMessage& asked);
  void refuse(std::uint32_t slot, const worker::MemoryMessage& asked);
  void tell_room(std::uint32_t slot, const worker::MemoryMessage& asked);
  bool returned(std::uint32_t slot, const worker::MemoryMessage& said);
  bool begin_round(Share& share, std::optional<std::uint32_t> for_slot);
  void answer_questions(const Share& collected);

  template <class F>
  void each_measured(const GpuUses& uses, F f);
  void note(std::uint32_t slot, unsigned device, const GpuUse& use);
  std::uint64_t overhead_of(std::uint32_t slot, const Held& held) const;
  void cover_overhead(std::uint32_t slot, unsigned device);
  void add_headroom(std::uint32_t slot, unsigned device);
  void grow(Held& held, std::uint64_t wanted);
  bool is_above(std::uint32_t slot, unsigned device);

  GpuAccounts& accounts_;
  const Acts acts_;
  std::uint64_t quota_ = 0;
  VmGpus gpus_;
  std::map<GpuAccount*, Share> shares_;
  std::vector<Worker> workers_;
  std::deque<Question> questions_;
  std::optional<Round> round_;
  std::uint32_t sequence_ = 0;
  bool start_wanted_ = false;  // a round was begun for a worker that a program waits for
};

}  // namespace host::broker
