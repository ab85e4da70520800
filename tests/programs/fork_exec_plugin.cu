// A library with its own runtime and kernels. fork_exec opens and closes this library.
#include <cuda_runtime.h>

namespace {

__device__ int start = 100;

__global__ void add(int* sum, int n) { atomicAdd(sum, threadIdx.x < n ? threadIdx.x + start : 0); }

}  // namespace

// Returns the sum of start + i for all i below n, or -1 on failure.
extern "C" int fork_exec_plugin_sum(int n) {
  int* sum = nullptr;
  int result = -1;
  if (cudaMalloc(&sum, sizeof(int)) != cudaSuccess || cudaMemset(sum, 0, sizeof(int)) != cudaSuccess) return -1;
  add<<<1, 64>>>(sum, n);
  if (cudaMemcpy(&result, sum, sizeof(int), cudaMemcpyDeviceToHost) != cudaSuccess) result = -1;
  return cudaFree(sum) == cudaSuccess ? result : -1;
}
