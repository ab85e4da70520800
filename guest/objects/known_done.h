// What is remembered of streams, events and the context that were found done (guest/marshal/done_question.h).
//
// Thread-safety: any thread, no lock; the words hand nothing over.
#pragma once

#include <atomic>
#include <cstdint>

namespace guest {

// Each: what had been posted when it was found done. What a wait has found answers queries, too; not the other way
// round, since what kernels have printed comes with a wait.
struct KnownDone {
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};
  std::atomic<std::uint64_t> for_queries{unknown}, for_waits{unknown};

  void forget() {
    for_queries.store(unknown, std::memory_order_relaxed);
    for_waits.store(unknown, std::memory_order_relaxed);
  }
};

}  // namespace guest
