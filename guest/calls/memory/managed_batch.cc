// Calls that give the same advice on many ranges of managed memory.
#include <algorithm>

#include "guest/calls/calls.h"
#include "guest/calls/find_stream.h"
#include "guest/calls/memory/managed.h"

namespace guest::calls {
namespace {

// The ranges of a call, and the places: place k applies to the ranges from first[k] on.
struct Batch {
  const CUdeviceptr* starts;
  const std::size_t* sizes;
  std::size_t count;
  const CUmemLocation* places;
  const std::size_t* first;
  std::size_t place_count;
};

bool are_ranges_valid(const Batch& b) {
  if (b.starts == nullptr || b.sizes == nullptr || b.count == 0) return false;
  for (std::size_t i = 0; i < b.count; ++i)
    if (!is_managed_range(b.starts[i], b.sizes[i])) return false;
  return true;
}

bool are_places_valid(const Batch& b) {
  if (b.places == nullptr || b.first == nullptr || b.place_count == 0 || b.place_count > b.count || b.first[0] != 0)
    return false;
  return std::is_sorted(b.first, b.first + b.place_count) && b.first[b.place_count - 1] < b.count &&
         std::all_of(b.places, b.places + b.place_count,
                     [](const CUmemLocation& place) { return judge_place(place) == CUDA_SUCCESS; });
}

void prefetch(const Batch& b) {
  std::size_t k = 0;
  for (std::size_t i = 0; i < b.count; ++i) {
    while (k + 1 < b.place_count && b.first[k + 1] <= i) ++k;
    session()->memory.managed.change(b.starts[i], b.sizes[i], [&](Advice& a) { a.prefetched = b.places[k]; });
  }
}

enum class Prefetches : bool { No, Yes };

// After a discard the memory may hold any value, so the guest leaves the old contents in place.
CUresult run(const Batch& batch, Prefetches prefetches, unsigned long long flags, CUstream stream) {
  StreamRef ref;
  if (const CUresult r = find_stream(stream, ref); r != CUDA_SUCCESS) return r;
  if (flags != 0 || ref.null_stream || !are_ranges_valid(batch)) return CUDA_ERROR_INVALID_VALUE;
  if (prefetches == Prefetches::No) return CUDA_SUCCESS;
  if (!are_places_valid(batch)) return CUDA_ERROR_INVALID_VALUE;
  prefetch(batch);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemPrefetchBatchAsync(CUdeviceptr* starts, std::size_t* sizes, std::size_t count, CUmemLocation* places,
                                 std::size_t* first, std::size_t place_count, unsigned long long flags,
                                 CUstream stream) {
  return run({starts, sizes, count, places, first, place_count}, Prefetches::Yes, flags, stream);
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* starts, std::size_t* sizes, std::size_t count,
                                           CUmemLocation* places, std::size_t* first, std::size_t place_count,
                                           unsigned long long flags, CUstream stream) {
  return run({starts, sizes, count, places, first, place_count}, Prefetches::Yes, flags, stream);
}

CUresult cuMemDiscardBatchAsync(CUdeviceptr* starts, std::size_t* sizes, std::size_t count, unsigned long long flags,
                                CUstream stream) {
  return run({starts, sizes, count, nullptr, nullptr, 0}, Prefetches::No, flags, stream);
}

}  // namespace guest::calls
