// Finds the block size with the best occupancy. The guest does the search, because the program's function computes a
// block's shared memory. The driver answers how many blocks of one size fit.
#include <algorithm>
#include <array>

#include "guest/calls/calls.h"
#include "guest/calls/launch_config.h"
#include "guest/calls/stub.h"
#include "guest/marshal/custom.h"
#include "ring/api/records.h"

namespace guest::calls {

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* min_grid, int* block, CUfunction function,
                                                   CUoccupancyB2DSize shared_for, std::size_t shared, int limit,
                                                   unsigned flags) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  if (min_grid == nullptr || block == nullptr || limit < 0) return CUDA_ERROR_INVALID_VALUE;
  const Object* object = session()->objects.find(function, api::Handle::Function);
  if (object == nullptr || object->function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const ring::DeviceInfo& info = device_info(context->device);
  const int warp = std::max(info.attribute[CU_DEVICE_ATTRIBUTE_WARP_SIZE], 1);  // the worker may have sent 0 or less
  const int processors = info.attribute[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
  int most = std::min(static_cast<int>(object->function->max_threads),
                      info.attribute[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK]);
  if (limit > 0) most = std::min(most, limit);

  std::int64_t best_threads = 0;
  *min_grid = *block = 0;
  // The search proceeds from the largest size down, so that the largest of several equally good sizes wins. All sizes
  // but the first are whole warps.
  for (int size = most; size > 0; size = (size - 1) / warp * warp) {
    const std::size_t dynamic = shared_for != nullptr ? shared_for(size) : shared;
    int blocks = 0;
    const CUresult r = Stub<api::id_of::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags>::call(
        &blocks, function, size, dynamic, flags);
    if (r != CUDA_SUCCESS) return r;
    const std::int64_t threads = std::int64_t{blocks} * size;
    if (threads <= best_threads) continue;
    best_threads = threads;
    *block = size;
    *min_grid = static_cast<int>(std::int64_t{blocks} * processors);
  }
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int* min_grid, int* block, CUfunction function, CUoccupancyB2DSize shared_for,
                                          std::size_t shared, int limit) {
  return calls::cuOccupancyMaxPotentialBlockSizeWithFlags(min_grid, block, function, shared_for, shared, limit,
                                                          CU_OCCUPANCY_DEFAULT);
}

namespace {

// Asks about the clusters of a launch. Only the driver knows the answer.
CUresult ask_driver(int call, const char* name, int* answer, CUfunction f, const CUlaunchConfig* c) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  if (answer == nullptr || f == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult r = check_config(name, c); r != CUDA_SUCCESS) return r;
  if (session()->objects.find(f, api::Handle::Function) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const api::LaunchRecord record{.function = reinterpret_cast<std::uint64_t>(f),
                                 .stream = 0,
                                 .grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
                                 .block = {c->blockDimX, c->blockDimY, c->blockDimZ},
                                 .shared = c->sharedMemBytes,
                                 .param_bytes = 0,
                                 .attributes = c->numAttrs,
                                 .used_extra = 0};
  std::array<CUlaunchAttribute, api::max_launch_attributes> sent;
  std::transform(c->attrs, c->attrs + c->numAttrs, sent.begin(), described<>);
  const Part attributes{sent.data(), c->numAttrs * sizeof(CUlaunchAttribute)};
  const auto take = [&](CUresult result, ring::SharedReader& reply) {
    if (result == CUDA_SUCCESS) *answer = static_cast<int>(reply.slot());
  };
  return cross({.call = call, .context = *context}, record, {&attributes, 1}, take).result;
}

}  // namespace

CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction f, const CUlaunchConfig* c) {
  return ask_driver(api::id_of::cuOccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters", clusters, f, c);
}

CUresult cuOccupancyMaxPotentialClusterSize(int* blocks, CUfunction f, const CUlaunchConfig* c) {
  return ask_driver(api::id_of::cuOccupancyMaxPotentialClusterSize, "cuOccupancyMaxPotentialClusterSize", blocks, f, c);
}

}  // namespace guest::calls
