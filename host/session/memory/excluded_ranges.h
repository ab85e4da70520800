// The excluded ranges: addresses that the driver must not use, since the guest's process has other mappings there
// (docs/design/004-reservation.md). The driver places memory like any Linux mapping. The worker therefore maps the free
// parts of these ranges without access rights, which uses addresses but no memory. The mappings last as long as the
// session.
//
// Trust: the guest chooses the ranges. The ranges are bounded in number and size, and never replace the worker's
// mappings. A false range only takes addresses from the guest's own session.
//
// Thread-safety: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ring/api/cuda.h"
#include "ring/base/mutex.h"

namespace host {

class ExcludedRanges {
 public:
  ExcludedRanges() = default;
  ~ExcludedRanges();
  ExcludedRanges(const ExcludedRanges&) = delete;
  ExcludedRanges& operator=(const ExcludedRanges&) = delete;

  // Excludes the free parts of [start, start + bytes). Returns CUDA_ERROR_OUT_OF_MEMORY if the session has excluded too
  // much. Preconditions: both numbers are multiples of ring::huge_page, and the range ends below api::end_of_addresses.
  CUresult add(std::uint64_t start, std::uint64_t bytes);

 private:
  struct Piece {
    std::uint64_t start, bytes;
  };
  bool take(std::uint64_t start, std::uint64_t bytes) REQUIRES(mutex_);
  void take_what_is_free(std::uint64_t start, std::uint64_t bytes, std::uint64_t piece) REQUIRES(mutex_);

  ring::Mutex mutex_;
  std::vector<Piece> taken_ GUARDED_BY(mutex_);  // adjacent pieces are merged
  std::size_t ranges_ GUARDED_BY(mutex_) = 0;
  std::uint64_t bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace host
