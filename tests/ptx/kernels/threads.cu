// Uses the interactions between threads: C and C++ atomics, cooperative groups, votes, barriers, fences, calls through
// pointers, and device printf, malloc and assert. integers.cu explains how these kernels are tested.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cassert>
#include <cstdio>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <utility>

namespace cg = cooperative_groups;

extern "C" __global__ void atomics(int* a, unsigned* b, unsigned long long* c, long long* e, float* f, double* d,
                                   unsigned short* h) {
  __shared__ int shared[32];
  __shared__ float sum;
  const int i = static_cast<int>(threadIdx.x);
  a[i] = atomicAdd(a, 3) + atomicSub(a, 4) + atomicExch(a, 5) + atomicMin(a, 6) + atomicMax(a, 7) + atomicAnd(a, 8) +
         atomicOr(a, 9) + atomicXor(a, 10) + atomicCAS(a, 11, 12) + atomicAdd_block(a, 1) + atomicAdd_system(a, 2);
  b[i] = atomicInc(b, 13) + atomicDec(b, 14) + atomicMin(b, 6) + atomicMax(b, 4) + atomicCAS_system(b, 1U, 2U);
  c[i] = atomicAdd(c, 3ULL) + atomicMin(c, 4ULL) + atomicMax(c, 5ULL) + atomicExch(c, 9ULL) + atomicCAS(c, 1ULL, 2ULL);
  e[i] = atomicMin(e, 4LL) + atomicMax_block(e, 5LL);
  f[i] = atomicAdd(f, 2.0F) + atomicExch(f, 3.0F);
  d[i] = atomicAdd(d, 2.0);
  h[i] = atomicCAS(h, static_cast<unsigned short>(1), static_cast<unsigned short>(2));
  atomicAdd(shared + 1, i), atomicAdd(&sum, 1.0F), atomicCAS(shared + 3, 1, 2), atomicAnd(c + 5, 6ULL);
#if __CUDA_ARCH__ >= 900
  *reinterpret_cast<float2*>(f + 2) = atomicAdd(reinterpret_cast<float2*>(f + 4), make_float2(1, 2));
  atomicAdd(reinterpret_cast<float4*>(f + 8), make_float4(1, 2, 3, 4));
#endif
}

extern "C" __global__ void orders(cuda::atomic<int>* x, cuda::atomic<unsigned long long, cuda::thread_scope_block>* y,
                                  cuda::atomic<double, cuda::thread_scope_system>* z, cuda::atomic<short>* s,
                                  int* out) {
  int expected = 3;
  out[0] = x->load() + x->load(cuda::memory_order_acquire) + x->fetch_sub(2, cuda::memory_order_relaxed);
  out[1] = x->exchange(4, cuda::memory_order_acq_rel) + x->fetch_max(4) + x->fetch_xor(3);
  out[2] = x->compare_exchange_strong(expected, 5) + x->compare_exchange_weak(expected, 6);
  x->store(4, cuda::memory_order_release), x->store(5), y->store(3, cuda::memory_order_relaxed);
  y->fetch_add(3), z->fetch_add(2.0), s->fetch_add(1);
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst);
  cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_block);
  cuda::atomic_ref<int>(out[3])++;
  __threadfence(), __threadfence_block(), __threadfence_system();
}

extern "C" __global__ void groups(int* a, float* f) {
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<32>(block);
  const auto quad = cg::tiled_partition<4>(tile);
  int x = cg::reduce(tile, a[threadIdx.x], cg::plus<int>()) + cg::reduce(quad, a[3], cg::greater<int>());
  f[3] = cg::reduce(tile, f[x & 3], cg::plus<float>());
  x += cg::inclusive_scan(tile, x) + cg::exclusive_scan(quad, x, cg::plus<int>());
  if ((x & 1) != 0) {
    const cg::coalesced_group some = cg::coalesced_threads();
    x += static_cast<int>(some.size()) + some.shfl(x, 0) + some.any(x) + cg::reduce(some, x, cg::bit_xor<int>());
  }
  x += static_cast<int>(cg::labeled_partition(tile, x & 3).size() + cg::binary_partition(tile, x > 3).size());
  cg::thread_block::arrival_token token = block.barrier_arrive();
  a[threadIdx.x] = x + static_cast<int>(tile.match_any(x)) + quad.shfl_xor(x, 1);
  block.barrier_wait(std::move(token));
  cg::this_grid().sync();
}

extern "C" __global__ void votes(int* a, long long* b) {
  const unsigned all = __activemask();
  int x = a[threadIdx.x];
  int same = 0;
  x +=
      __shfl_sync(all, x, 3) + __shfl_up_sync(all, x, 1) + __shfl_down_sync(all, x, 2) + __shfl_xor_sync(all, x, 4, 16);
  x += __all_sync(all, x) + __any_sync(all, x) + static_cast<int>(__ballot_sync(all, x)) + __uni_sync(all, x);
  x += static_cast<int>(__match_any_sync(all, x) + __match_all_sync(all, b[threadIdx.x], &same)) + same;
#if __CUDA_ARCH__ >= 800
  x += __reduce_add_sync(all, x) + static_cast<int>(__reduce_xor_sync(all, static_cast<unsigned>(x)));
#endif
  x += __syncthreads_count(x) + __syncthreads_and(x) + __syncthreads_or(x) + static_cast<int>(clock() + clock64());
  __syncwarp(), __nanosleep(20);
  a[threadIdx.x] = __ldg(a + x) + __ldcg(a + 5) + __ldcs(a + 6) + __ldca(a + 7) + __ldcv(a + 8) + __ldlu(a + 9);
  __stcg(a + 1, 2), __stwt(a + 2, 3), __stcs(a + 3, 4), __stwb(a + 4, 5);
}

struct Shape {
  virtual __device__ int sides(int x) { return x; }
  virtual __device__ ~Shape() {}
};
struct Square : Shape {
  __device__ int sides(int x) override { return x + 4; }
};
__device__ int twice(int x) { return 2 * x; }
__device__ int thrice(int x) { return 3 * x; }
__device__ int (*table[2])(int) = {twice, thrice};
__device__ int steps(int n) { return n < 2 ? 1 : steps(n - 1) + steps(n - 2); }

extern "C" __global__ void calls(int* a) {
  const int i = static_cast<int>(threadIdx.x);
  Shape* const shape = (i & 1) != 0 ? new Square : new Shape;
  a[i] = shape->sides(i) + table[i & 1](i) + steps(i & 7);
  delete shape;
  printf("%d %f %s\n", i, 1.5, "text");
  assert(a[i] >= 0);
  if (a[i] == 99) __trap();
  a[5] = static_cast<int>(__isGlobal(a) + __isShared(a) + __isLocal(a) + __isConstant(a));
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(1, 1, 1) cluster(int* a) {
#if __CUDA_ARCH__ >= 900
  __shared__ int values[32];
  const cg::cluster_group group = cg::this_cluster();
  values[threadIdx.x & 31] = 1;
  group.sync();
  a[threadIdx.x] = group.map_shared_rank(values, 0)[3] + static_cast<int>(group.query_shared_rank(values));
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}
#endif
