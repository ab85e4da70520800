// Clusters of blocks, whose size is an attribute of the kernel or of the launch: ranks, barriers, and shared memory
// that the blocks of a cluster read and change for each other.
#include <cooperative_groups.h>

#include <initializer_list>

#include "check.h"

namespace cg = cooperative_groups;

// The compiler also produces code for GPUs without clusters, which is never launched.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define IN_CLUSTERS 0
#define CLUSTERS_OF(x, y, z)
#else
#define IN_CLUSTERS 1
#define CLUSTERS_OF(x, y, z) __cluster_dims__(x, y, z)
#endif

namespace {

constexpr unsigned threads = 64;

// Each block reads the number that its neighbour has written: four blocks read 6 5 6 5.
__global__ void CLUSTERS_OF(2, 1, 1) of_two(int* out) {
#if IN_CLUSTERS
  __shared__ int value;
  const cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) value = 5 + static_cast<int>(cluster.block_rank());
  cluster.sync();
  if (threadIdx.x == 0) out[blockIdx.x] = *cluster.map_shared_rank(&value, cluster.block_rank() ^ 1);
  cluster.sync();
#endif
}

// Stores the position of each block in eleven words.
__global__ void places(unsigned* out) {
#if IN_CLUSTERS
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  unsigned* const words = out + 11 * block;
  if (cluster.thread_rank() % threads != 0) return;
  const dim3 index = cluster.block_index(), size = cluster.dim_blocks();
  words[0] = index.x, words[1] = index.y, words[2] = index.z;
  words[3] = size.x, words[4] = size.y, words[5] = size.z;
  words[6] = cluster.block_rank();
  words[7] = cluster.num_blocks();
  words[8] = cluster.num_threads();
  words[9] = cluster.thread_rank();
  unsigned explicit_cluster;
  asm("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(explicit_cluster));
  words[10] = explicit_cluster;
#endif
}

// Counts values in a table that is distributed over the shared memory of the cluster's blocks.
__global__ void count(const int* values, unsigned n, unsigned* counts, unsigned bins) {
#if IN_CLUSTERS
  extern __shared__ unsigned part[];
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned each = bins / cluster.num_blocks();
  for (unsigned k = threadIdx.x; k < each; k += blockDim.x) part[k] = 0;
  cluster.sync();
  for (unsigned k = blockIdx.x * blockDim.x + threadIdx.x; k < n; k += gridDim.x * blockDim.x) {
    const unsigned bin = static_cast<unsigned>(values[k]);
    atomicAdd(cluster.map_shared_rank(part, bin / each) + bin % each, 1u);
  }
  cluster.sync();
  for (unsigned k = threadIdx.x; k < each; k += blockDim.x) {
    atomicAdd(counts + cluster.block_rank() * each + k, part[k]);
  }
#endif
}

// Passes a value around the cluster: each block writes it to the next block, which reads it after both halves of the
// barrier.
__global__ void ring(int* out, int rounds) {
#if IN_CLUSTERS
  __shared__ int box[2][threads];
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  int value = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  cluster.sync();
  for (int round = 0; round < rounds; ++round) {
    cluster.map_shared_rank(box[round % 2], next)[threadIdx.x] = value + 1;
    cluster.barrier_arrive();
    cluster.barrier_wait();
    value = box[round % 2][threadIdx.x];
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = value;
#endif
}

template <class... P, class... A>
cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 cluster, size_t shared, A... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {cluster.x, cluster.y, cluster.z};
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, static_cast<P>(arguments)...);
}

void run_of_two() {
  int* const out = check::device_copy(std::vector<int>(4));
  of_two<<<4, threads>>>(out);
  CHECK_CUDA(cudaGetLastError());
  const std::vector<int> got = check::host_copy(out, 4);
  std::printf("clusters of two, by the kernel alone: %d %d %d %d\n", got[0], got[1], got[2], got[3]);
  check::compare("of_two", got, {6, 5, 6, 5});
  CHECK_CUDA(launch(of_two, 4, 2, 0, out));
  check::compare("of_two, asked for as it is", check::host_copy(out, 4), {6, 5, 6, 5});
  CHECK_CUDA(cudaFree(out));

  cudaFuncAttributes attributes;
  CHECK_CUDA(cudaFuncGetAttributes(&attributes, of_two));
  std::printf("its cluster: %d %d %d\n", attributes.requiredClusterWidth, attributes.requiredClusterHeight,
              attributes.requiredClusterDepth);
}

void run_places(dim3 grid, dim3 cluster) {
  const unsigned blocks = grid.x * grid.y * grid.z;
  unsigned* const out = check::device_copy(std::vector<unsigned>(11 * blocks));
  CHECK_CUDA(launch(places, grid, cluster, 0, out));
  const std::vector<unsigned> got = check::host_copy(out, 11 * blocks);
  std::vector<unsigned> expected;
  for (unsigned block = 0; block < blocks; ++block) {
    const unsigned x = block % grid.x % cluster.x, y = block / grid.x % grid.y % cluster.y;
    const unsigned z = block / grid.x / grid.y % cluster.z;
    const unsigned rank = x + cluster.x * (y + cluster.y * z), size = cluster.x * cluster.y * cluster.z;
    for (const unsigned word :
         {x, y, z, cluster.x, cluster.y, cluster.z, rank, size, size * threads, rank * threads, 1u})
      expected.push_back(word);
  }
  check::compare("places", got, expected);
  std::printf("places in clusters of %u x %u x %u: %016llx\n", cluster.x, cluster.y, cluster.z,
              static_cast<unsigned long long>(check::checksum(got)));
  CHECK_CUDA(cudaFree(out));
}

void run_count(unsigned blocks, unsigned size) {
  constexpr unsigned bins = 256, n = 20000;
  std::vector<int> values(n);
  std::vector<unsigned> expected(bins);
  for (unsigned k = 0; k < n; ++k) {
    values[k] = check::small_number(k, 1) * 16 + check::small_number(k, 2);
    ++expected[static_cast<unsigned>(values[k])];
  }
  const int* const in = check::device_copy(values);
  unsigned* const counts = check::device_copy(std::vector<unsigned>(bins));
  CHECK_CUDA(launch(count, blocks, size, bins / size * sizeof(unsigned), in, n, counts, bins));
  const std::vector<unsigned> got = check::host_copy(counts, bins);
  check::compare("count", got, expected);
  std::printf("counts in the memory of %u blocks: %016llx\n", size,
              static_cast<unsigned long long>(check::checksum(got)));
}

void run_ring(unsigned blocks, unsigned size) {
  constexpr int rounds = 33;
  int* const out = check::device_buffer<int>(blocks * threads);
  CHECK_CUDA(launch(ring, blocks, size, 0, out, rounds));
  std::vector<int> expected;
  for (unsigned block = 0; block < blocks; ++block) {
    const unsigned rank = block % size, from = (rank + size * rounds - rounds) % size;
    for (unsigned t = 0; t < threads; ++t)
      expected.push_back(static_cast<int>((block - rank + from) * threads + t) + rounds);
  }
  const std::vector<int> got = check::host_copy(out, blocks * threads);
  check::compare("ring", got, expected);
  std::printf("round a ring of %u: %016llx\n", size, static_cast<unsigned long long>(check::checksum(got)));
  CHECK_CUDA(cudaFree(out));
}

void expect_refusal(const char* what, cudaError_t error) {
  CHECK_THAT(error != cudaSuccess, "%s is not refused.", what);
  cudaGetLastError();
  CHECK_CUDA(cudaDeviceSynchronize());
  std::printf("%s: refused\n", what);
}

void run_refusals() {
  int* const out = check::device_copy(std::vector<int>(16, 7));
  expect_refusal("another size than the kernel's", launch(of_two, 4, 4, 0, out));
  // If launches are posted, the next wait is the first call that returns the error.
  of_two<<<3, threads>>>(out);
  const cudaError_t at_once = cudaGetLastError();
  expect_refusal("a grid of three in clusters of two", at_once == cudaSuccess ? cudaDeviceSynchronize() : at_once);
  expect_refusal("a grid of four in clusters of three", launch(ring, 4, 3, 0, out, 1));
  expect_refusal("clusters of 64", launch(ring, 64, 64, 0, out, 1));
  check::compare("memory after the refusals", check::host_copy(out, 16), std::vector<int>(16, 7));
  CHECK_CUDA(cudaFree(out));
}

}  // namespace

int main(int argc, char** argv) {
  long blocks = 16;
  check::parse(argc, argv, "clusters", "runs kernels whose blocks work together in clusters",
               {{"--blocks", "of each grid, rounded up to a multiple of eight", &blocks, 1, 4096}});
  const auto grid = static_cast<unsigned>((blocks + 7) / 8 * 8);
  cudaFuncAttributes attributes;
  CHECK_CUDA(cudaFuncGetAttributes(&attributes, of_two));
  if (attributes.ptxVersion < 90) {
    std::printf("this program holds no code for a GPU with clusters\n");
    return 0;
  }
  run_of_two();
  run_places({grid, 4, 2}, {4, 2, 1});
  run_places({grid, 4, 2}, {2, 2, 2});
  run_places({grid, 1, 1}, {1, 1, 1});
  for (const unsigned size : {1u, 2u, 4u, 8u}) {
    run_count(grid, size);
    run_ring(grid, size);
  }
  run_refusals();
  return 0;
}
