// An object's state for the order of host threads (guest/session/order.h): the last posted call that used the object,
// and whether graphs may use the object without naming it.
//
// Thread-safety: any thread, no lock. All accesses are relaxed: the word orders no memory. A program that uses an
// object from two threads orders the threads itself, so the second thread sees the use by the first thread. Another
// word shows whether the worker has executed the use (`executed`, edge X in host/untrusted/channel.cc). Covered by: the
// model order and the explorer's scenario order (docs/models.md).
#pragma once

#include <atomic>
#include <cstdint>

#include "ring/verify/mutants.h"

namespace guest {

// A posted call: the call's channel, and the position of the call's record in the channel. Position 0: no call.
struct Use {
  std::uint32_t channel = 0;
  std::uint64_t position = 0;
  constexpr std::uint64_t packed() const { return ((std::uint64_t{channel} + 1) << 56) | position; }
  static constexpr Use of(std::uint64_t packed) {
    return {static_cast<std::uint32_t>((packed >> 56) - 1), packed & ((1ULL << 56) - 1)};
  }
};

// Returns whether the worker has executed the record of a use (guest/session/order.h).
using Executed = bool (*)(Use);
// For objects without a session: no use is pending.
inline bool nothing_under_way(Use) { return true; }

class LastUse {
 public:
  // Stands for several uses that may not be executed yet, because the guest gave up waiting for one of them. A call
  // that uses the object then waits for every channel.
  static constexpr std::uint32_t any_channel = 0xfe;
  static constexpr std::uint64_t several = Use{any_channel, 0}.packed();

  // From now on launches of graphs may use the object without naming it, so the object's last use is unknown.
  void used_by_graphs() { word_.fetch_or(by_graphs, std::memory_order_relaxed); }

  // Waits until the worker has executed the last use by a channel other than `mine`; any_channel stands for every use.
  // `await(use)` waits, and returns false if it gave up; await_others() then returns false, too.
  template <class Await>
  bool await_others(std::uint32_t mine, Await await) const {
    const std::uint64_t word = word_.load(std::memory_order_relaxed);
    const std::uint64_t last = unless_by_graphs(word, ring::Mutant::graphs_by_last_use);
    if (last == 0 || Use::of(last).channel == mine || ring::wrong(ring::Mutant::order_not_awaited)) return true;
    return await(Use::of(last));
  }

  // Remembers a use. Two threads may use an object at the same time, but the object remembers only one use. This
  // function therefore waits for the other channel's use; a later wait for the remembered use covers both. If that wait
  // is given up, the object remembers `several`.
  template <class Await>
  void remember(Use use, Await await) {
    std::uint64_t word = word_.load(std::memory_order_relaxed), next;
    do {
      const std::uint64_t last = word & ~by_graphs;
      const Use before = Use::of(last);
      const bool same_channel = last != 0 && before.channel == use.channel;
      const bool older = same_channel && before.position > use.position;  // happens if threads share a channel
      if (older && !ring::wrong(ring::Mutant::use_set_back)) return;
      const bool forgets = last != 0 && !same_channel && !ring::wrong(ring::Mutant::use_forgotten);
      next = forgets && !await(before) ? several : use.packed();
      if (!ring::wrong(ring::Mutant::graphs_forgotten)) next |= word & by_graphs;
    } while (!word_.compare_exchange_weak(word, next, std::memory_order_relaxed, std::memory_order_relaxed));
  }

  // Returns the packed use, to compare with a later one. Returns `several` if the next use might leave the value
  // unchanged.
  std::uint64_t now() const {
    return unless_by_graphs(word_.load(std::memory_order_relaxed), ring::Mutant::graphs_known_done);
  }

  void forget() { word_.store(0, std::memory_order_relaxed); }

 private:
  // A bit that no position reaches, since no channel posts so many records.
  static constexpr std::uint64_t by_graphs = std::uint64_t{1} << 55;

  static std::uint64_t unless_by_graphs(std::uint64_t word, ring::Mutant mutant) {
    return (word & by_graphs) != 0 && !ring::wrong(mutant) ? several : word & ~by_graphs;
  }

  std::atomic<std::uint64_t> word_{0};  // Use::packed, with or without by_graphs; 0: no use
};

}  // namespace guest
