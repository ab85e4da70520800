// Address ranges that the driver must keep clear of, since the guest's process has something there
// (docs/design/004-reservation.md). The driver places memory as Linux places a mapping, so the worker maps what is free
// of such a range, without rights: that takes addresses, and no memory. It lasts as long as the session.
//
// Trust: the guest names the ranges. They are bounded, and never lie over what the worker has. A nonsensical one takes
// addresses from its own session only.
//
// Thread-safety: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "ring/api/cuda.h"

namespace host {

class Avoided {
 public:
  Avoided() = default;
  ~Avoided();
  Avoided(const Avoided&) = delete;
  Avoided& operator=(const Avoided&) = delete;

  // Takes what is free of [start, start + bytes). CUDA_ERROR_OUT_OF_MEMORY: the session has named too much.
  // Preconditions: both are multiples of ring::huge_page, and the range ends below api::end_of_addresses.
  CUresult add(std::uint64_t start, std::uint64_t bytes);

 private:
  struct Piece {
    std::uint64_t start, bytes;
  };
  bool take(std::uint64_t start, std::uint64_t bytes);
  void take_what_is_free(std::uint64_t start, std::uint64_t bytes, std::uint64_t piece);

  std::mutex mutex_;
  std::vector<Piece> taken_;  // what follows on another is one with it
  std::size_t ranges_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace host
