// Calls that advise, prefetch or discard many managed ranges at once.
#include "host/simgpu/api/memory/managed.h"

#include "host/simgpu/api/stream/streams.h"

using namespace simgpu;

namespace {

// The ranges and locations of a call. Location k applies to the ranges from first[k] on.
struct Batch {
  const CUdeviceptr* starts;
  const std::size_t* sizes;
  std::size_t count;
  const CUmemLocation* places;
  const std::size_t* first;
  std::size_t place_count;
};

bool valid_ranges(Driver& driver, const Batch& batch) {
  if (batch.sizes == nullptr || batch.count == 0) return false;
  for (std::size_t i = 0; i < batch.count; ++i)
    if (!is_managed_range(driver, batch.starts[i], batch.sizes[i])) return false;
  return true;
}

CUresult judge_places(Driver& driver, const Batch& batch) {
  if (batch.places == nullptr || batch.first == nullptr || batch.place_count == 0 || batch.place_count > batch.count ||
      batch.first[0] != 0)
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t k = 0; k < batch.place_count; ++k) {
    if (batch.first[k] >= batch.count || (k != 0 && batch.first[k] < batch.first[k - 1]))
      return CUDA_ERROR_INVALID_VALUE;
    if (judge_place(driver, batch.places[k]) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

void prefetch(Driver& driver, const Batch& batch) {
  std::size_t k = 0;
  for (std::size_t i = 0; i < batch.count; ++i) {
    while (k + 1 < batch.place_count && batch.first[k + 1] <= i) ++k;
    driver.managed_advice.change(batch.starts[i], batch.sizes[i], [&](Advice& a) { a.prefetched = batch.places[k]; });
  }
}

enum class Prefetches : bool { No, Yes };

// Runs a batch of prefetches or discards. A discarded range keeps its content, because CUDA leaves the content
// undefined.
CUresult run(const Batch& batch, Prefetches prefetches, unsigned long long flags, CUstream handle) {
  if (batch.starts == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_context_of(handle, [&](Driver& driver, Context& context) {
    const std::shared_ptr<Stream> stream = stream_of(driver, context, handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const bool legacy = handle == nullptr || handle == CU_STREAM_LEGACY;
    if (flags != 0 || legacy || !valid_ranges(driver, batch)) return CUDA_ERROR_INVALID_VALUE;
    if (prefetches == Prefetches::Yes) {
      if (const CUresult error = judge_places(driver, batch); error != CUDA_SUCCESS) return error;
      prefetch(driver, batch);
    }
    post(driver, *stream, {});
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuMemPrefetchBatchAsync(CUdeviceptr* dptrs, std::size_t* sizes, std::size_t count, CUmemLocation* prefetchLocs,
                                 std::size_t* prefetchLocIdxs, std::size_t numPrefetchLocs, unsigned long long flags,
                                 CUstream hStream) {
  return run({dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs}, Prefetches::Yes, flags, hStream);
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* dptrs, std::size_t* sizes, std::size_t count,
                                           CUmemLocation* prefetchLocs, std::size_t* prefetchLocIdxs,
                                           std::size_t numPrefetchLocs, unsigned long long flags, CUstream hStream) {
  return run({dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs}, Prefetches::Yes, flags, hStream);
}

CUresult cuMemDiscardBatchAsync(CUdeviceptr* dptrs, std::size_t* sizes, std::size_t count, unsigned long long flags,
                                CUstream hStream) {
  return run({dptrs, sizes, count, nullptr, nullptr, 0}, Prefetches::No, flags, hStream);
}

CUresult cuMemPrefetchBatchAsync_ptsz(CUdeviceptr* dptrs, std::size_t* sizes, std::size_t count,
                                      CUmemLocation* prefetchLocs, std::size_t* prefetchLocIdxs,
                                      std::size_t numPrefetchLocs, unsigned long long flags, CUstream hStream) {
  return cuMemPrefetchBatchAsync(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags,
                                 own(hStream));
}

CUresult cuMemDiscardAndPrefetchBatchAsync_ptsz(CUdeviceptr* dptrs, std::size_t* sizes, std::size_t count,
                                                CUmemLocation* prefetchLocs, std::size_t* prefetchLocIdxs,
                                                std::size_t numPrefetchLocs, unsigned long long flags,
                                                CUstream hStream) {
  return cuMemDiscardAndPrefetchBatchAsync(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags,
                                           own(hStream));
}

CUresult cuMemDiscardBatchAsync_ptsz(CUdeviceptr* dptrs, std::size_t* sizes, std::size_t count,
                                     unsigned long long flags, CUstream hStream) {
  return cuMemDiscardBatchAsync(dptrs, sizes, count, flags, own(hStream));
}
