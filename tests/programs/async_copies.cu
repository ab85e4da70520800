// Asynchronous copies from global into shared memory: by cooperative groups, by a pipeline of two stages, and by a
// barrier in shared memory that counts threads and bytes. From compute capability 8.0 on, the hardware has instructions
// for these copies. The program also adds half-precision numbers in memory; they are so small that no sum is rounded.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_fp16.h>

#include <cuda/barrier>
#include <cuda/pipeline>
#include <utility>

#include "check.h"

namespace cg = cooperative_groups;

namespace {

constexpr int tile = 128;  // ints that a block copies per iteration, one per thread
using BlockBarrier = cuda::barrier<cuda::thread_scope_block>;
// One thread calls the initialiser explicitly.
#pragma nv_diag_suppress static_var_with_dynamic_init

__device__ int changed(const int* values, int turn) { return values[tile - 1 - threadIdx.x] * 3 + turn; }

__global__ void by_group(const int* in, int* out, int turns) {
  __shared__ alignas(16) int values[tile];
  const cg::thread_block block = cg::this_thread_block();
  for (int turn = 0; turn < turns; ++turn) {
    const int first = (blockIdx.x * turns + turn) * tile;
    cg::memcpy_async(block, values, in + first, sizeof values);
    cg::wait(block);
    out[first + threadIdx.x] = changed(values, turn);
    block.sync();
  }
}

// The next iteration's copy runs while this iteration uses its values.
__global__ void by_pipeline(const int* in, int* out, int turns) {
  __shared__ alignas(16) int values[2][tile];
  cuda::pipeline<cuda::thread_scope_thread> pipeline = cuda::make_pipeline();
  const auto fetch = [&](int turn) {
    pipeline.producer_acquire();
    if (turn < turns) {
      const int* const from = in + (blockIdx.x * turns + turn) * tile + threadIdx.x;
      cuda::memcpy_async(&values[turn % 2][threadIdx.x], from, sizeof(int), pipeline);
    }
    pipeline.producer_commit();
  };
  fetch(0);
  for (int turn = 0; turn < turns; ++turn) {
    fetch(turn + 1);
    cuda::pipeline_consumer_wait_prior<1>(pipeline);
    __syncthreads();
    out[(blockIdx.x * turns + turn) * tile + threadIdx.x] = changed(values[turn % 2], turn);
    __syncthreads();
    pipeline.consumer_release();
  }
}

__global__ void by_barrier(const int* in, int* out, int turns) {
  __shared__ alignas(16) int values[tile];
  __shared__ BlockBarrier barrier;
  const cg::thread_block block = cg::this_thread_block();
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  block.sync();
  for (int turn = 0; turn < turns; ++turn) {
    const int first = (blockIdx.x * turns + turn) * tile;
    cuda::memcpy_async(block, values, in + first, cuda::aligned_size_t<16>(sizeof values), barrier);
    BlockBarrier::arrival_token token = barrier.arrive();
    barrier.wait(std::move(token));
    out[first + threadIdx.x] = changed(values, turn);
    barrier.arrive_and_wait();
  }
}

__global__ void sum_halves(const int* in, __half2* sums) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const __half value = __int2half_rn(in[i]);
  atomicAdd(&sums[threadIdx.x % 4], __halves2half2(value, __hneg(value)));
}

void compare(const char* way, const int* device_out, const std::vector<int>& in, int turns) {
  CHECK_CUDA(cudaGetLastError());
  const std::vector<int> out = check::host_copy(device_out, in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    const int turn = static_cast<int>(i / tile) % turns;
    const int wanted = in[i / tile * tile + (tile - 1 - i % tile)] * 3 + turn;
    CHECK_THAT(out[i] == wanted, "%s: element %zu is %d, the CPU says %d.", way, i, out[i], wanted);
  }
  CHECK_CUDA(cudaMemset(const_cast<int*>(device_out), 0, in.size() * sizeof(int)));
  std::printf("async_copies: %s, %d turns: ok\n", way, turns);
}

// At most 128 threads add to one sum, each a number below 16. All sums stay below 2048 and are therefore exact.
void check_halves(const int* device_in, const std::vector<int>& in) {
  __half2* const device_sums = check::device_copy(std::vector<__half2>(4));
  sum_halves<<<4, tile>>>(device_in, device_sums);
  CHECK_CUDA(cudaGetLastError());
  const std::vector<__half2> sums = check::host_copy(device_sums, 4);
  for (int k = 0; k < 4; ++k) {
    int wanted = 0;
    for (int i = k; i < 4 * tile; i += 4) wanted += in[i];
    const float low = __low2float(sums[k]), high = __high2float(sums[k]);
    CHECK_THAT(low == wanted && high == -wanted, "Sum %d of halves is %g and %g, the CPU says %d.", k, double{low},
               double{high}, wanted);
  }
  CHECK_CUDA(cudaFree(device_sums));
  std::printf("async_copies: sums of halves: ok\n");
}

}  // namespace

int main(int argc, char** argv) {
  long blocks = 12, turns = 5;
  check::parse(argc, argv, "async_copies", "copies into shared memory that are not waited for",
               {{"--blocks", "number of blocks", &blocks, 4, 10000}, {"--turns", "copies of each", &turns, 1, 1000}});
  std::vector<int> in(blocks * turns * tile);
  for (size_t i = 0; i < in.size(); ++i) in[i] = check::small_number(i, 7);
  int* const device_in = check::device_copy(in);
  int* const device_out = check::device_buffer<int>(in.size());
  const auto grid = static_cast<unsigned>(blocks);
  const auto count = static_cast<int>(turns);
  by_group<<<grid, tile>>>(device_in, device_out, count);
  compare("by a group", device_out, in, count);
  by_pipeline<<<grid, tile>>>(device_in, device_out, count);
  compare("by a pipeline", device_out, in, count);
  by_barrier<<<grid, tile>>>(device_in, device_out, count);
  compare("by a barrier", device_out, in, count);
  check_halves(device_in, in);
  CHECK_CUDA(cudaFree(device_in));
  CHECK_CUDA(cudaFree(device_out));
  return 0;
}
