// New device memory, at an address that the driver has chosen. An address of device memory must mean nothing else in this
// process, so the guest reserves the range. If something of the program lies there, the guest asks for other memory
// (docs/design/004-reservation.md).
//
// It keeps what collides until something fits, so that the driver does not offer the same addresses again, and gives it
// back at its end. One thread uses it, for one call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "guest/process/context.h"
#include "ring/api/arg.h"

namespace guest {

class NewMemory {
 public:
  // `range`: Made for a reservation, else Stays.
  NewMemory(Context& context, api::Range range) : context_(context), range_(range) {}
  ~NewMemory();
  NewMemory(const NewMemory&) = delete;
  NewMemory& operator=(const NewMemory&) = delete;

  // Whether the call is done: the memory fits, or so many have collided that the address space counts as too full. Then
  // `result` becomes CUDA_ERROR_OUT_OF_MEMORY.
  bool keep(std::uint64_t start, std::uint64_t bytes, CUresult& result);

 private:
  struct Collided {
    std::uint64_t start, bytes;
  };
  static constexpr std::size_t most_ = 64;

  Context& context_;
  const api::Range range_;
  std::array<Collided, most_> collided_;
  std::size_t count_ = 0;
};

}  // namespace guest
