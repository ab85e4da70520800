// New device memory, at an address that the driver has chosen. An address of device memory must mean nothing else in this
// process, so the guest reserves the range. If something of the program lies there, the guest tells the worker where, and
// asks for other memory (docs/design/004-reservation.md).
//
// It keeps what collides until something fits, so that the driver does not offer the same addresses again. At its end it
// gives back what is large. What is small stays with the context: it comes from a block whose other pieces collide, too.
// One thread uses it, for one call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "guest/process/context.h"
#include "ring/api/arg.h"

namespace guest {

class NewMemory {
 public:
  static constexpr std::uint64_t least_large = std::uint64_t{1} << 20;  // the driver cuts smaller pieces from blocks

  // `range`: Made for a reservation, else Stays.
  NewMemory(Context& context, api::Range range) : context_(context), range_(range) {}
  ~NewMemory();
  NewMemory(const NewMemory&) = delete;
  NewMemory& operator=(const NewMemory&) = delete;

  // Whether the call is done: the memory fits, or so many have collided that the address space counts as too full. Then
  // `result` becomes CUDA_ERROR_OUT_OF_MEMORY.
  bool keep(std::uint64_t start, std::uint64_t bytes, CUresult& result);
  // How many have collided.
  std::size_t collided() const { return count_; }
  // Gives this back at the end, though it fits.
  void give_back(std::uint64_t start, std::uint64_t bytes) { to_give_back_.push_back({start, bytes}); }

 private:
  struct Memory {
    std::uint64_t start, bytes;
  };
  static constexpr std::size_t most_ = 512;

  void tell_worker(std::uint64_t start, std::uint64_t bytes);

  Context& context_;
  const api::Range range_;
  std::size_t count_ = 0;
  std::vector<Memory> to_give_back_;
};

}  // namespace guest
