// Adds two vectors on the GPU, once with a thread per element and once with a grid-stride loop of few blocks, for
// floats and for 64-bit integers. This is the simplest complete program: allocate, copy, launch, copy back, free.
#include "check.h"

namespace {

template <class T>
__global__ void add(const T* a, const T* b, T* sum, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = a[i] + b[i];
}

template <class T>
__global__ void add_strided(const T* a, const T* b, T* sum, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum[i] = a[i] + b[i];
}

constexpr int block = 256;

template <class T>
void run(const char* type, int n) {
  std::vector<T> a(n), b(n), expected(n);
  for (int i = 0; i < n; ++i) {
    a[i] = static_cast<T>(check::small_number(i, 1)) * 4096 + i;
    b[i] = static_cast<T>(check::small_number(i, 2)) - i / 2;
    expected[i] = a[i] + b[i];
  }
  T* device_a = check::device_copy(a);
  T* device_b = check::device_copy(b);
  T* device_sum = check::device_buffer<T>(n);

  CHECK_CUDA(cudaMemset(device_sum, 0xff, n * sizeof(T)));
  add<<<(n + block - 1) / block, block>>>(device_a, device_b, device_sum, n);
  CHECK_CUDA(cudaGetLastError());
  const std::vector<T> sum = check::host_copy(device_sum, n);
  check::compare("thread per element", sum, expected);

  CHECK_CUDA(cudaMemset(device_sum, 0xff, n * sizeof(T)));
  add_strided<<<3, block>>>(device_a, device_b, device_sum, n);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaDeviceSynchronize());
  check::compare("grid-stride loop", check::host_copy(device_sum, n), expected);

  CHECK_CUDA(cudaFree(device_a));
  CHECK_CUDA(cudaFree(device_b));
  CHECK_CUDA(cudaFree(device_sum));
  std::printf("vector_add: %s, %d elements, checksum %016llx\n", type, n,
              static_cast<unsigned long long>(check::checksum(sum)));
}

}  // namespace

int main(int argc, char** argv) {
  long n = 100000;
  // Up to 4 million elements every sum is exact in a float.
  check::parse(argc, argv, "vector_add", "adds vectors on the GPU and compares with the CPU",
               {{"--n", "number of elements", &n, 1, 4000000}});
  run<float>("float", static_cast<int>(n));
  run<long long>("int64", static_cast<int>(n));
  return 0;
}
