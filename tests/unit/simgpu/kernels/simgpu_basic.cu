// Kernels compiled by nvcc, for tests of the simulated GPU's engine. kernels_test.cc compares their results with the
// processor's.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <cassert>
#include <cstdio>

namespace cg = cooperative_groups;

__constant__ float weights[16];
__device__ int counter = 3;
__device__ const char* const words[2] = {"even", "odd"};

extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i] * weights[i & 15];
}

extern "C" __global__ void matrix_mul(float* c, const float* a, const float* b, int width_a, int width_b) {
  constexpr int tile = 16;
  __shared__ float as[tile][tile];
  __shared__ float bs[tile][tile];
  const int row = blockIdx.y * tile + threadIdx.y;
  const int column = blockIdx.x * tile + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < width_a; k += tile) {
    as[threadIdx.y][threadIdx.x] = a[row * width_a + k + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * width_b + column];
    __syncthreads();
    for (int j = 0; j < tile; ++j) sum += as[threadIdx.y][j] * bs[j][threadIdx.x];
    __syncthreads();
  }
  c[row * width_b + column] = sum;
}

// Sums up a block by shared memory and shuffles, and the grid by an atomic.
extern "C" __global__ void reduce_sum(const int* in, int n, unsigned long long* out) {
  extern __shared__ int partial[];
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int step = blockDim.x / 2; step >= 32; step /= 2) {
    if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x < 32) {
    int value = partial[threadIdx.x];
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(~0u, value, step);
    if (threadIdx.x == 0) atomicAdd(out, static_cast<unsigned long long>(value));
  }
}

extern "C" __global__ void tile_sum(const int* in, int* out) {
  const auto block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<8>(block);
  const int i = block.thread_rank();
  out[i] = cg::reduce(tile, in[i], cg::plus<int>());
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

struct Large {
  int values[40];
  double scale;
};
__device__ __noinline__ Large scaled(Large value, int i) {
  value.values[i] += i;
  value.scale *= 2;
  return value;
}

extern "C" __global__ void calls(Large value, int* out, double* scale) {
  const int i = threadIdx.x;
  const Large result = scaled(value, i % 40);
  out[i] = fibonacci(i % 12) + result.values[i % 40] + result.values[(i + 1) % 40];
  if (i == 0) *scale = result.scale;
}

using Operation = int (*)(int);
__device__ int add_one(int a) { return a + 1; }
__device__ int twice(int a) { return a * 2; }
__device__ int minus(int a) { return -a; }
__device__ Operation operations[3] = {add_one, twice, minus};

extern "C" __global__ void indirect(int* out) { out[threadIdx.x] = operations[threadIdx.x % 3](out[threadIdx.x]); }

extern "C" __global__ void maths(const float* in, float* out, double* wide, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = in[i];
  out[i * 8 + 0] = sinf(x);
  out[i * 8 + 1] = cosf(x * 1000.0f);
  out[i * 8 + 2] = expf(x);
  out[i * 8 + 3] = logf(x + 1.0f);
  out[i * 8 + 4] = powf(x, 1.5f);
  out[i * 8 + 5] = sqrtf(x);
  out[i * 8 + 6] = x / (x + 3.0f);
  out[i * 8 + 7] = rsqrtf(x + 0.5f);
  wide[i * 4 + 0] = sin(static_cast<double>(x));
  wide[i * 4 + 1] = exp(static_cast<double>(x));
  wide[i * 4 + 2] = 1.0 / (x + 7.0);
  wide[i * 4 + 3] = pow(static_cast<double>(x), 0.3);
}

extern "C" __global__ void print_words(int n) {
  if (threadIdx.x < n) printf("%d %s %5.2f|\n", threadIdx.x, words[threadIdx.x & 1], threadIdx.x * 0.5);
}

extern "C" __global__ void check_positive(const int* in) { assert(in[threadIdx.x] > 0); }

extern "C" __global__ void heap(int* out) {
  int* const memory = static_cast<int*>(malloc(8 * sizeof(int)));
  for (int k = 0; k < 8; ++k) memory[k] = threadIdx.x + k;
  int sum = 0;
  for (int k = 0; k < 8; ++k) sum += memory[k];
  out[threadIdx.x] = sum;
  free(memory);
}

// The lanes of one warp acquire a lock one after another.
extern "C" __global__ void spin_lock(int* lock, int* value, int rounds) {
  for (int k = 0; k < rounds; ++k) {
    bool done = false;
    while (!done) {
      if (atomicCAS(lock, 0, 1) == 0) {
        *static_cast<volatile int*>(value) = *static_cast<volatile int*>(value) + 1;
        __threadfence();
        atomicExch(lock, 0);
        done = true;
      }
    }
  }
}

// A lane waits for a value that a later lane of the same warp writes.
extern "C" __global__ void lane_waits(volatile int* flag, int* out) {
  if (threadIdx.x == 0) {
    while (*flag == 0) {
    }
    out[0] = *flag;
  } else if (threadIdx.x == 31) {
    *flag = 42;
  }
}

extern "C" __global__ void grid_barrier(int* values, int* out) {
  const auto grid = cg::this_grid();
  values[grid.thread_rank()] = static_cast<int>(grid.thread_rank());
  grid.sync();
  const int other = static_cast<int>(grid.size() - 1 - grid.thread_rank());
  out[grid.thread_rank()] = values[other];
}

extern "C" __global__ void collatz(const unsigned* in, unsigned* steps, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned value = in[i];
  unsigned count = 0;
  while (value != 1) {
    value = (value & 1) != 0 ? 3 * value + 1 : value / 2;
    ++count;
  }
  steps[i] = count;
}

extern "C" __global__ void histogram(const unsigned char* in, int n, unsigned* bins) {
  __shared__ unsigned local[256];
  for (int k = threadIdx.x; k < 256; k += blockDim.x) local[k] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[in[i]], 1u);
  __syncthreads();
  for (int k = threadIdx.x; k < 256; k += blockDim.x) atomicAdd(&bins[k], local[k]);
}

extern "C" __global__ void votes(const int* in, unsigned* out) {
  const int value = in[threadIdx.x];
  out[threadIdx.x * 4 + 0] = __ballot_sync(~0u, value > 10);
  out[threadIdx.x * 4 + 1] = __match_any_sync(~0u, value);
  out[threadIdx.x * 4 + 2] = __any_sync(~0u, value > 20) + 2 * __all_sync(~0u, value >= 0);
  out[threadIdx.x * 4 + 3] = __syncthreads_count(value & 1);
}
