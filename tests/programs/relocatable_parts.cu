// The second source file of the program `relocatable`; relocatable.cu is the first.
#include "relocatable_parts.h"

#include "check.h"

__device__ Tally tally;
__device__ unsigned weights[4] = {2, 3, 5, 7};
__constant__ unsigned bias;

namespace {

__device__ unsigned doubled(unsigned value) { return 2 * value; }

__global__ void count(unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicAdd(&tally.calls, 1u);
  atomicAdd(&tally.sum, weighted(i));
}

}  // namespace

__device__ Step chosen_step = doubled;

__device__ unsigned weighted(unsigned value) { return value * weights[value % 4] + bias; }
__device__ unsigned recursive_sum(unsigned value) { return value == 0 ? 0 : value + recursive_sum(value - 1); }

void launch_tally(unsigned n) {
  count<<<(n + 127) / 128, 128>>>(n);
  CHECK_CUDA(cudaGetLastError());
}
