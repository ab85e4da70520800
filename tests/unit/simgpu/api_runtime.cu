// Tests calls of the CUDA runtime on the simulated GPU that tests/programs does not cover: constant and managed
// variables, printf, pitched and asynchronous memory, launches with attributes, cooperative launches, occupancy, reset.
// The program is built in several ways (static and shared runtime, relocatable device code, per-thread default
// streams). Each build must exit with 0 and print the same lines.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#define CHECK(call)                                                                         \
  do {                                                                                      \
    const cudaError_t check_result = (call);                                                \
    if (check_result != cudaSuccess) fail(__LINE__, #call, cudaGetErrorName(check_result)); \
  } while (0)
#define EXPECT(condition)                                        \
  do {                                                           \
    if (!(condition)) fail(__LINE__, #condition, "is not true"); \
  } while (0)

namespace {

[[noreturn]] void fail(int line, const char* what, const char* how) {
  std::fflush(stdout);
  std::fprintf(stderr, "line %d: %s: %s\n", line, what, how);
  std::exit(1);
}

}  // namespace

__constant__ int factors[4] = {1, 2, 3, 4};
__managed__ int shared_counter = 100;
__device__ float table[8];

#ifdef SECOND_PART
extern __device__ int from_second_part(int value);
#else
__device__ int from_second_part(int value) { return value + 1000; }
#endif

__global__ void scale(int* data, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) data[i] = from_second_part(i * factors[i % 4]);
}

__global__ void count() { atomicAdd(&shared_counter, 1); }

__global__ void say(const char* text, int number, double fraction) {
  printf("from thread %d: %s %d %.3f\n", static_cast<int>(threadIdx.x), text, number, fraction);
}

__global__ void sum_of_grid(int* partial, int* total) {
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  if (threadIdx.x == 0) partial[blockIdx.x] = static_cast<int>(blockIdx.x) + 1;
  grid.sync();
  if (grid.thread_rank() != 0) return;
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i];
  *total = sum;
}

__global__ void use_shared(int* out) {
  extern __shared__ int buffer[];
  buffer[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = buffer[blockDim.x - 1 - threadIdx.x];
}

namespace {

void variables() {
  const int new_factors[4] = {5, 6, 7, 8};
  int* data = nullptr;
  CHECK(cudaMalloc(&data, 400));
  CHECK(cudaMemcpyToSymbol(factors, new_factors, sizeof new_factors));
  scale<<<4, 32>>>(data, 100);
  CHECK(cudaGetLastError());
  std::vector<int> back(100);
  CHECK(cudaMemcpy(back.data(), data, 400, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 100; ++i) EXPECT(back[static_cast<size_t>(i)] == i * new_factors[i % 4] + 1000);
  CHECK(cudaFree(data));

  EXPECT(shared_counter == 100);
  shared_counter = 200;
  count<<<3, 40>>>();
  CHECK(cudaDeviceSynchronize());
  EXPECT(shared_counter == 320);

  float values[8] = {0, 1, 2, 3, 4, 5, 6, 7}, read[8] = {};
  void* address = nullptr;
  size_t size = 0;
  CHECK(cudaGetSymbolAddress(&address, table));
  CHECK(cudaGetSymbolSize(&size, table));
  EXPECT(size == sizeof values);
  CHECK(cudaMemcpy(address, values, sizeof values, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpyFromSymbol(read, table, sizeof read));
  EXPECT(std::memcmp(values, read, sizeof values) == 0);
  std::printf("variables\n");
}

void printing() {
  char* text = nullptr;
  CHECK(cudaMallocManaged(&text, 16));
  std::strcpy(text, "hello");
  say<<<1, 1>>>(text, 7, 2.5);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(text));
  std::printf("printing\n");
}

void memory() {
  char* pitched = nullptr;
  size_t pitch = 0;
  CHECK(cudaMallocPitch(&pitched, &pitch, 100, 10));
  EXPECT(pitch >= 100);
  std::vector<char> rows(100 * 10), back(100 * 10);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<char>(i * 7);
  CHECK(cudaMemset2D(pitched, pitch, 0, 100, 10));
  CHECK(cudaMemcpy2D(pitched, pitch, rows.data(), 100, 100, 10, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy2D(back.data(), 100, pitched, pitch, 100, 10, cudaMemcpyDeviceToHost));
  EXPECT(rows == back);
  CHECK(cudaFree(pitched));

  cudaStream_t stream = nullptr;
  int* data = nullptr;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMallocAsync(&data, 400, stream));
  scale<<<4, 32, 0, stream>>>(data, 100);
  int last = 0;
  CHECK(cudaMemcpyAsync(&last, data + 99, 4, cudaMemcpyDefault, stream));
  CHECK(cudaFreeAsync(data, stream));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(last == 99 * 8 + 1000);
  CHECK(cudaStreamDestroy(stream));

  std::vector<int> registered(64);
  int* on_device = nullptr;
  CHECK(cudaHostRegister(registered.data(), 256, cudaHostRegisterMapped));
  CHECK(cudaHostGetDevicePointer(&on_device, registered.data(), 0));
  scale<<<2, 32>>>(on_device, 64);
  CHECK(cudaDeviceSynchronize());
  EXPECT(registered[63] == 63 * 8 + 1000);
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, registered.data()));
  EXPECT(attributes.type == cudaMemoryTypeHost);
  CHECK(cudaHostUnregister(registered.data()));
  CHECK(cudaPointerGetAttributes(&attributes, registered.data()));
  EXPECT(attributes.type == cudaMemoryTypeUnregistered);
  std::printf("memory\n");
}

void launches() {
  int *partial = nullptr, *total = nullptr;
  CHECK(cudaMallocManaged(&partial, 64 * sizeof(int)));
  CHECK(cudaMallocManaged(&total, sizeof(int)));
  void* arguments[] = {&partial, &total};
  CHECK(cudaLaunchCooperativeKernel(sum_of_grid, dim3(10), dim3(64), arguments, 0, nullptr));
  CHECK(cudaDeviceSynchronize());
  EXPECT(*total == 55);
  EXPECT(cudaLaunchCooperativeKernel(sum_of_grid, dim3(100000), dim3(1024), arguments, 0, nullptr) ==
         cudaErrorCooperativeLaunchTooLarge);
  (void)cudaGetLastError();

  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(5);
  config.blockDim = dim3(32);
  config.attrs = &attribute;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, sum_of_grid, partial, total));
  CHECK(cudaDeviceSynchronize());
  EXPECT(*total == 15);

  int* out = nullptr;
  CHECK(cudaMallocManaged(&out, 1024 * sizeof(int)));
  CHECK(cudaFuncSetAttribute(use_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 80 << 10));
  use_shared<<<1, 1024, 80 << 10>>>(out);
  CHECK(cudaDeviceSynchronize());
  EXPECT(out[0] == 1023 && out[1023] == 0);
  cudaFuncAttributes function;
  CHECK(cudaFuncGetAttributes(&function, use_shared));
  EXPECT(function.maxDynamicSharedSizeBytes == 80 << 10);
  int blocks = 0, grid = 0, block = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, use_shared, 256, 0));
  EXPECT(blocks > 0);
  CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, use_shared));
  EXPECT(grid > 0 && block >= 32);
  for (void* memory : {static_cast<void*>(partial), static_cast<void*>(total), static_cast<void*>(out)})
    CHECK(cudaFree(memory));
  std::printf("launches\n");
}

void threads() {
  std::vector<std::thread> running;
  for (int t = 0; t < 4; ++t) {
    running.emplace_back([] {
      int* data = nullptr;
      std::vector<int> back(100);
      CHECK(cudaMalloc(&data, 400));
      for (int round = 0; round < 20; ++round) {
        scale<<<4, 32>>>(data, 100);
        CHECK(cudaMemcpy(back.data(), data, 400, cudaMemcpyDeviceToHost));
        EXPECT(back[50] == 50 * 7 + 1000);
      }
      CHECK(cudaFree(data));
    });
  }
  for (std::thread& thread : running) thread.join();
  std::printf("threads\n");
}

void reset() {
  for (int round = 0; round < 3; ++round) {
    CHECK(cudaDeviceReset());
    int* data = nullptr;
    int value = 0;
    CHECK(cudaMalloc(&data, 400));
    scale<<<4, 32>>>(data, 100);
    CHECK(cudaMemcpy(&value, data + 99, 4, cudaMemcpyDeviceToHost));
    EXPECT(value == 99 * 4 + 1000);  // the constants have been reset as well
  }
  std::printf("reset\n");
}

}  // namespace

int main() {
  variables();
  printing();
  memory();
  launches();
  threads();
  reset();
  return 0;
}
