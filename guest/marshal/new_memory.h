// New device memory, at an address that the driver has chosen. No other memory of this process may lie at a device
// address, so the guest reserves the range. If memory of the program lies there, the guest reports the place to the
// worker and asks for other memory (docs/design/004-reservation.md).
//
// This object keeps colliding allocations until an allocation fits, so that the driver does not offer the same
// addresses again. The destructor frees the large allocations. Small allocations stay allocated until the context ends,
// since the rest of their block collides, too. One thread uses the object, for one call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "guest/process/context.h"
#include "ring/api/arg.h"

namespace guest {

class NewMemory {
 public:
  // The driver cuts smaller allocations from blocks.
  static constexpr std::uint64_t least_large = std::uint64_t{1} << 20;

  // `range`: api::Range::Made for a reservation, api::Range::Stays for other memory.
  NewMemory(Context& context, api::Range range) : context_(context), range_(range) {}
  ~NewMemory();
  NewMemory(const NewMemory&) = delete;
  NewMemory& operator=(const NewMemory&) = delete;

  // Returns true if the call is done: the memory fits, or too many allocations have collided. In the second case
  // `result` becomes CUDA_ERROR_OUT_OF_MEMORY.
  bool keep(std::uint64_t start, std::uint64_t bytes, CUresult& result);
  // Returns the number of allocations that collided.
  std::size_t collided() const { return count_; }
  // Makes the destructor free this allocation, although the allocation fits.
  void give_back(std::uint64_t start, std::uint64_t bytes) { to_give_back_.push_back({start, bytes}); }

 private:
  struct Memory {
    std::uint64_t start, bytes;
  };
  static constexpr std::size_t most_ = 512;

  void report_to_worker(std::uint64_t start, std::uint64_t bytes);

  Context& context_;
  const api::Range range_;
  std::size_t count_ = 0;
  std::vector<Memory> to_give_back_;
};

}  // namespace guest
