// The address ranges that a guest process has reserved (cuMemAddressReserve). What is mapped there stands in the map of
// addresses (host/session/memory/addresses.h), piece by piece.
//
// It takes only checked values, and values of the driver. Invariants: ranges do not overlap, since the driver gives no
// address twice; while no call holds changing(), the map of addresses has those pieces that the driver has mapped. Ranges
// end with no context. Any thread may call it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "host/session/memory/addresses.h"
#include "ring/api/arg.h"
#include "ring/verify/mutants.h"

namespace host {

class VirtualRanges {
 public:
  explicit VirtualRanges(Addresses& mapped) : mapped_(mapped) {}

  // A call that reserves, maps, unmaps or ends a range holds this from before its check until it is settled. Otherwise the
  // driver could do two such calls in one order, and the session settle them in the other
  // (docs/design/045-addresses-that-are-gone.md). The driver may wait for the GPU meanwhile, so no other call takes this.
  [[nodiscard]] std::unique_lock<std::mutex> changing() {
    if (ring::wrong(ring::Mutant::mapping_unlocked)) return {};
    return std::unique_lock(changes_);
  }
  void add(std::uint64_t start, std::uint64_t bytes);
  // Whether one reservation has all of [start, start + bytes).
  bool holds(std::uint64_t start, std::uint64_t bytes) const;
  // A call has made this of [start, start + bytes). Preconditions: the call holds changing(), and one reservation holds the
  // range. `object`: the id of the memory object, if it was mapped there. Returns the objects of mappings that have ended,
  // one for each.
  std::vector<std::uint64_t> settle(api::Range range, std::uint64_t start, std::uint64_t bytes,
                                    std::uint64_t object = 0);
  // The number of reservations.
  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  struct Reservation {
    std::uint64_t bytes = 0;
    std::uint32_t number = 0;
  };
  std::map<std::uint64_t, Reservation>::const_iterator holder_of(std::uint64_t start, std::uint64_t bytes) const;

  Addresses& mapped_;
  std::mutex changes_;  // taken before all other locks of the session
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Reservation> ranges_;  // by start
  std::uint32_t next_number_ = 1;
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace host
