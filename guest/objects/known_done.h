// The state of a stream, an event or a context that was found done (guest/marshal/done_question.h).
//
// Thread-safety: any thread, no lock. The atomics order no other memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace guest {

// Each member records which calls had been posted when the object was found done. A wait's result also answers queries.
// A query's result does not answer waits, since a wait also fetches the output of kernels.
struct KnownDone {
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};
  std::atomic<std::uint64_t> for_queries{unknown}, for_waits{unknown};

  void forget() {
    for_queries.store(unknown, std::memory_order_relaxed);
    for_waits.store(unknown, std::memory_order_relaxed);
  }
};

}  // namespace guest
