// Calls about occupancy.
#include "host/simgpu/api/launch/occupancy.h"
#include "host/simgpu/api/device/device.h"
#include "host/simgpu/api/device/hints.h"
#include "host/simgpu/api/launch/clusters.h"

#include <algorithm>

namespace simgpu {
namespace {

template <class T>
T round_up(T value, T step) {
  return (value + step - 1) / step * step;
}

}  // namespace

int resident_blocks(const LoadedFunction& function, std::uint64_t threads, std::size_t dynamic_shared) {
  // units in which registers and shared memory are allocated
  constexpr std::uint64_t register_step = 256, shared_step = 128;
  const Function& code = *function.code;
  if (threads > code.max_threads_per_block || dynamic_shared > static_cast<std::size_t>(function.max_dynamic_shared))
    return 0;
  const std::uint64_t warps = round_up<std::uint64_t>(threads, device_warp) / device_warp;
  const std::uint64_t registers_per_warp =
      round_up<std::uint64_t>(static_cast<std::uint64_t>(std::max(code.registers, 1)) * device_warp, register_step);
  const std::uint64_t shared =
      round_up<std::uint64_t>(code.static_shared + dynamic_shared + device_shared_reserved, shared_step);
  const std::uint64_t by_warps = device_multiprocessor_threads / device_warp / warps;
  const std::uint64_t by_registers = device_registers / (registers_per_warp * warps);
  const std::uint64_t by_shared = device_multiprocessor_shared / shared;
  return static_cast<int>(std::min({std::uint64_t{device_multiprocessor_blocks}, by_warps, by_registers, by_shared}));
}

namespace {

template <class F>
CUresult with_function(CUfunction handle, bool has_room, F&& call) {
  return with_context([&](Driver& driver, Context&) {
    if (!has_room) return CUDA_ERROR_INVALID_VALUE;  // checked before the function handle, as in the driver
    CUresult error;
    const FunctionReference reference = resolve(driver, handle, &error);
    return reference.function == nullptr ? error : call(*reference.function);
  });
}

bool has_known_attributes(const CUlaunchConfig& config) {
  if (config.numAttrs == 0) return true;
  if (config.attrs == nullptr) return false;
  return std::all_of(config.attrs, config.attrs + config.numAttrs,
                     [](const CUlaunchAttribute& a) { return is_launch_attribute(a.id); });
}

std::optional<Dim3> cluster_asked(const CUlaunchConfig& config) {
  std::optional<Dim3> asked;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const auto& cluster = config.attrs[i].value.clusterDim;
    if (config.attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) asked = Dim3{cluster.x, cluster.y, cluster.z};
  }
  return asked;
}

struct BlockSize {
  int threads = 0, blocks = 0;
};

// Returns the block size, a multiple of a warp, that keeps the most threads resident; among equal sizes the largest.
BlockSize best_block_size(const LoadedFunction& function, CUoccupancyB2DSize shared_of, std::size_t shared, int limit) {
  int most = static_cast<int>(function.code->max_threads_per_block);
  if (limit > 0) most = std::min(most, limit);
  BlockSize best;
  for (int threads = most; threads > 0; threads = (threads - 1) / device_warp * device_warp) {
    const std::size_t dynamic = shared_of != nullptr ? shared_of(threads) : shared;
    const int blocks = resident_blocks(function, static_cast<std::uint64_t>(threads), dynamic);
    if (blocks * threads > best.blocks * best.threads) best = {threads, blocks};
  }
  return best;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, CUfunction func, int blockSize,
                                                              std::size_t dynamicSMemSize, unsigned flags) {
  return with_function(func, numBlocks != nullptr, [&](const LoadedFunction& function) {
    if (blockSize <= 0 || (flags & ~unsigned{CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE}) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    *numBlocks = resident_blocks(function, static_cast<std::uint64_t>(blockSize), dynamicSMemSize);
    return CUDA_SUCCESS;
  });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, CUfunction func, int blockSize,
                                                     std::size_t dynamicSMemSize) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize, dynamicSMemSize, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize, CUfunction func,
                                                   CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                   std::size_t dynamicSMemSize, int blockSizeLimit, unsigned flags) {
  return with_function(func, minGridSize != nullptr && blockSize != nullptr, [&](const LoadedFunction& function) {
    if (blockSizeLimit < 0 || (flags & ~unsigned{CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE}) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    const BlockSize best = best_block_size(function, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit);
    *minGridSize = best.blocks * device_multiprocessors;
    *blockSize = best.threads;
    return CUDA_SUCCESS;
  });
}

CUresult cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction func,
                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize, std::size_t dynamicSMemSize,
                                          int blockSizeLimit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func, blockSizeToDynamicSMemSize,
                                                   dynamicSMemSize, blockSizeLimit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(std::size_t* dynamicSmemSize, CUfunction func, int numBlocks,
                                                 int blockSize) {
  return with_function(func, dynamicSmemSize != nullptr, [&](const LoadedFunction& function) {
    if (numBlocks <= 0 || blockSize <= 0) return CUDA_ERROR_INVALID_VALUE;
    if (resident_blocks(function, static_cast<std::uint64_t>(blockSize), 0) < numBlocks)
      return CUDA_ERROR_INVALID_VALUE;
    const int each = device_multiprocessor_shared / numBlocks - device_shared_reserved;
    const int free = each - static_cast<int>(function.code->static_shared);
    *dynamicSmemSize = static_cast<std::size_t>(std::clamp(free, 0, function.max_dynamic_shared.load()));
    return CUDA_SUCCESS;
  });
}

CUresult cuOccupancyMaxPotentialClusterSize(int* clusterSize, CUfunction func, const CUlaunchConfig* config) {
  if (clusterSize == nullptr || func == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_function(func, has_known_attributes(*config), [&](const LoadedFunction& function) {
    const std::uint64_t threads = std::uint64_t{config->blockDimX} * config->blockDimY * config->blockDimZ;
    const bool grid = config->gridDimX != 0 && config->gridDimY != 0 && config->gridDimZ != 0;
    if (threads == 0 || !grid) return CUDA_ERROR_INVALID_VALUE;
    const int resident = resident_blocks(function, threads, config->sharedMemBytes);
    *clusterSize = resident == 0 ? 0 : static_cast<int>(largest_cluster(function));
    return CUDA_SUCCESS;
  });
}

// The result is 0 if the launch has no clusters, or if a cluster has no blocks.
CUresult cuOccupancyMaxActiveClusters(int* numClusters, CUfunction func, const CUlaunchConfig* config) {
  if (numClusters == nullptr || func == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool readable = config->numAttrs == 0 || config->attrs != nullptr;
  return with_function(func, readable, [&](const LoadedFunction& function) {
    std::optional<Dim3> cluster = cluster_asked(*config);
    const bool empty = cluster && (cluster->x == 0 || cluster->y == 0 || cluster->z == 0);
    const CUresult error = empty ? CUDA_SUCCESS : cluster_of(function, cluster, cluster);
    if (error != CUDA_SUCCESS) return error;
    const std::uint64_t threads = std::uint64_t{config->blockDimX} * config->blockDimY * config->blockDimZ;
    if (threads == 0) return CUDA_ERROR_INVALID_VALUE;
    const int blocks = cluster ? static_cast<int>(cluster->x * cluster->y * cluster->z) : 0;
    const int resident = resident_blocks(function, threads, config->sharedMemBytes) * device_multiprocessors;
    *numClusters = blocks == 0 ? 0 : resident / blocks;
    return CUDA_SUCCESS;
  });
}
