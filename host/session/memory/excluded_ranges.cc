#include "host/session/memory/excluded_ranges.h"

#include <sys/mman.h>

#include <algorithm>

#include "ring/api/records.h"
#include "ring/base/mutex.h"

namespace host {
namespace {

// The driver reserves address space in chunks of this size, and returns addresses that are multiples of
// ring::huge_page.
constexpr std::uint64_t chunk = std::uint64_t{32} << 20;

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

ExcludedRanges::~ExcludedRanges() {
  for (const auto& [start, bytes] : taken_) munmap(pointer(start), bytes);
}

bool ExcludedRanges::take(std::uint64_t start, std::uint64_t bytes) {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  void* const at = mmap(pointer(start), bytes, PROT_NONE, flags, -1, 0);
  if (at == MAP_FAILED) return false;
  if (at != pointer(start)) {
    munmap(at, bytes);
    return false;
  }  // an old kernel treats the address as a hint
  if (!taken_.empty() && taken_.back().start + taken_.back().bytes == start)
    taken_.back().bytes += bytes;
  else
    taken_.push_back({start, bytes});
  return true;
}

// If the worker has a mapping in the range, excludes the free parts in smaller pieces.
void ExcludedRanges::take_what_is_free(std::uint64_t start, std::uint64_t bytes, std::uint64_t piece) {
  if (take(start, bytes) || bytes <= ring::huge_page) return;
  for (std::uint64_t done = 0; done < bytes; done += piece)
    take_what_is_free(start + done, std::min(piece, bytes - done), ring::huge_page);
}

CUresult ExcludedRanges::add(std::uint64_t start, std::uint64_t bytes) {
  const ring::MutexLock lock(mutex_);
  if (ranges_ == api::max_excluded_ranges || bytes > api::max_excluded_bytes - bytes_) return CUDA_ERROR_OUT_OF_MEMORY;
  ++ranges_;
  bytes_ += bytes;
  take_what_is_free(start, bytes, chunk);
  return CUDA_SUCCESS;
}

}  // namespace host
