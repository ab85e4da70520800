// An object's state for the order of host threads (guest/session/order.h): the last posted call that named the object,
// and whether graphs may use it unnamed.
//
// Thread-safety: any thread, no lock. All accesses are relaxed: the word orders no memory. A program that uses an
// object from two threads orders them itself, so the second thread sees the first one's use. Another word shows whether
// the use was executed (`executed`, edge X in host/untrusted/channel.cc). Covered by: the model order and the
// explorer's scenario order (docs/models.md).
#pragma once

#include <atomic>
#include <cstdint>

#include "ring/verify/mutants.h"

namespace guest {

// A posted call: its channel, and its record's position there. Position 0: none.
struct Use {
  std::uint32_t channel = 0;
  std::uint64_t position = 0;
  constexpr std::uint64_t packed() const { return ((std::uint64_t{channel} + 1) << 56) | position; }
  static constexpr Use of(std::uint64_t packed) {
    return {static_cast<std::uint32_t>((packed >> 56) - 1), packed & ((1ULL << 56) - 1)};
  }
};

// Whether the record of a use has been executed (guest/session/order.h).
using Executed = bool (*)(Use);
// For objects without a session.
inline bool nothing_under_way(Use) { return true; }

class LastUse {
 public:
  // Stands for several uses, not known to be executed, because a wait for one of them was given up. A call that names
  // the object then waits for every channel.
  static constexpr std::uint32_t any_channel = 0xfe;
  static constexpr std::uint64_t several = Use{any_channel, 0}.packed();

  // From now on launches of graphs may use the object without naming it, so its last use is unknown.
  void used_by_graphs() { word_.fetch_or(by_graphs, std::memory_order_relaxed); }

  // Waits until the last use by a channel other than `mine` was executed; any_channel stands for every use. `await`:
  // bool(Use), waits. Returns false if it does.
  template <class Await>
  bool await_others(std::uint32_t mine, Await await) const {
    const std::uint64_t word = word_.load(std::memory_order_relaxed);
    const std::uint64_t last = unless_by_graphs(word, ring::Mutant::graphs_by_last_use);
    if (last == 0 || Use::of(last).channel == mine || ring::wrong(ring::Mutant::order_not_awaited)) return true;
    return await(Use::of(last));
  }

  // Remembers a use. Two threads may use an object at the same time, but the object remembers one use. This function
  // therefore awaits the other channel's use; a later wait for the remembered use covers both. If that wait is given
  // up, the object remembers `several`.
  template <class Await>
  void remember(Use use, Await await) {
    std::uint64_t word = word_.load(std::memory_order_relaxed), next;
    do {
      const std::uint64_t last = word & ~by_graphs;
      const Use before = Use::of(last);
      const bool same_channel = last != 0 && before.channel == use.channel;
      const bool older = same_channel && before.position > use.position;  // threads that share a channel
      if (older && !ring::wrong(ring::Mutant::use_set_back)) return;
      const bool forgets = last != 0 && !same_channel && !ring::wrong(ring::Mutant::use_forgotten);
      next = forgets && !await(before) ? several : use.packed();
      if (!ring::wrong(ring::Mutant::graphs_forgotten)) next |= word & by_graphs;
    } while (!word_.compare_exchange_weak(word, next, std::memory_order_relaxed, std::memory_order_relaxed));
  }

  // The packed use, to compare with a later one. `several` if the next use may not change the word.
  std::uint64_t now() const {
    return unless_by_graphs(word_.load(std::memory_order_relaxed), ring::Mutant::graphs_known_done);
  }

  void forget() { word_.store(0, std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t by_graphs = std::uint64_t{1} << 55;  // no channel posts so many records

  static std::uint64_t unless_by_graphs(std::uint64_t word, ring::Mutant mutant) {
    return (word & by_graphs) != 0 && !ring::wrong(mutant) ? several : word & ~by_graphs;
  }

  std::atomic<std::uint64_t> word_{0};  // Use::packed, with or without by_graphs; 0: none
};

}  // namespace guest
