// A program that posts all its work, computes on the CPU until the GPU is done, and queries an event from time to time.
// The work is a copy to the device, kernels and a copy back, with time measurements in between.
#include <chrono>

#include "check.h"

namespace {

constexpr int block = 256;

__global__ void add(int* data, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] += value;
}

// Counts until the event is complete; fails after a minute.
unsigned long long count_until(cudaEvent_t event) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (unsigned long long counted = 0;; ++counted) {
    const cudaError_t state = cudaEventQuery(event);
    if (state == cudaSuccess) return counted;
    CHECK_THAT(state == cudaErrorNotReady, "cudaEventQuery gave %s.", cudaGetErrorName(state));
    CHECK_THAT(std::chrono::steady_clock::now() < limit, "The event was not done in a minute.");
  }
}

}  // namespace

int main(int argc, char** argv) {
  long n = 100000, kernels = 5;
  check::parse(argc, argv, "async_api", "posts copies and kernels and works on the CPU meanwhile",
               {{"--n", "number of elements", &n, 1, 100000000}, {"--kernels", "kernels", &kernels, 1, 1000}});
  const size_t bytes = n * sizeof(int);
  int* host = nullptr;
  int* device = check::device_buffer<int>(n);
  cudaEvent_t start = nullptr, between = nullptr, stop = nullptr;
  CHECK_CUDA(cudaMallocHost(&host, bytes));
  for (cudaEvent_t* event : {&start, &between, &stop}) CHECK_CUDA(cudaEventCreate(event));
  for (long i = 0; i < n; ++i) host[i] = static_cast<int>(i);
  CHECK_CUDA(cudaMemset(device, 255, bytes));
  CHECK_CUDA(cudaDeviceSynchronize());

  CHECK_CUDA(cudaEventRecord(start, nullptr));
  CHECK_CUDA(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, nullptr));
  CHECK_CUDA(cudaEventRecord(between, nullptr));
  int total = 0;
  for (int k = 1; k <= kernels; ++k) {
    add<<<static_cast<unsigned>((n + block - 1) / block), block>>>(device, static_cast<int>(n), k * 26);
    total += k * 26;
  }
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, nullptr));
  CHECK_CUDA(cudaEventRecord(stop, nullptr));
  (void)count_until(stop);
  (void)cudaGetLastError();

  float first = -1, second = -1, whole = -1;
  CHECK_CUDA(cudaEventElapsedTime(&first, start, between));
  CHECK_CUDA(cudaEventElapsedTime(&second, between, stop));
  CHECK_CUDA(cudaEventElapsedTime(&whole, start, stop));
  CHECK_THAT(first >= 0 && second >= 0 && whole >= first && whole >= second, "The times are %g and %g, together %g ms.",
             double{first}, double{second}, double{whole});
  CHECK_THAT(whole < first + second + 0.1f && whole > first + second - 0.1f, "%g and %g ms are %g together.",
             double{first}, double{second}, double{whole});
  for (long i = 0; i < n; ++i) {
    CHECK_THAT(host[i] == static_cast<int>(i) + total, "Element %ld is %d, the CPU says %d.", i, host[i],
               static_cast<int>(i) + total);
  }
  std::printf("async_api: %ld kernels on %ld elements, checksum %016llx\n", kernels, n,
              static_cast<unsigned long long>(check::checksum(host, bytes)));
  for (const cudaEvent_t event : {start, between, stop}) CHECK_CUDA(cudaEventDestroy(event));
  CHECK_CUDA(cudaFreeHost(host));
  CHECK_CUDA(cudaFree(device));
  return 0;
}
