// Threads that all wait for one long kernel. Half of them wait for its stream, the other half launch into that stream's
// full queue. Natively each of these threads keeps a processor busy.
//
// usage: spinners LIBCUDA THREADS SECONDS. Prints "waiting" when all threads have begun, and "right" when the kernel
// has ended and all calls have succeeded. Exit codes: 0, 1 a call failed, 2 the program could not begin.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/long_kernel.h"
#include "tests/named_driver.h"

namespace {

constexpr int more_than_a_queue = 2000;

CUcontext context = nullptr;
CUstream stream = nullptr;
CUfunction kernel = nullptr;

CUresult launch(unsigned long long ns) {
  void* parameters[] = {&ns};
  return CU(cuLaunchKernel)(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
}

bool begin(const char* path) {
  CUmodule module = nullptr;
  return open_library(path) != nullptr && CU(cuInit)(0) == CUDA_SUCCESS &&
         CU(cuDevicePrimaryCtxRetain)(&context, 0) == CUDA_SUCCESS && CU(cuCtxSetCurrent)(context) == CUDA_SUCCESS &&
         CU(cuModuleLoadData)(&module, long_kernel_text) == CUDA_SUCCESS &&
         CU(cuModuleGetFunction)(&kernel, module, "long_kernel") == CUDA_SUCCESS &&
         CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS && launch(0) == CUDA_SUCCESS &&
         CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS;
}

bool wait_somehow(int thread) {
  if (CU(cuCtxSetCurrent)(context) != CUDA_SUCCESS) return false;
  if (thread % 2 == 0) return CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS;
  for (int i = 0; i < more_than_a_queue; ++i)
    if (launch(0) != CUDA_SUCCESS) return false;
  return CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 || !begin(argv[1])) return 2;
  if (launch(static_cast<unsigned long long>(std::atof(argv[3]) * 1e9)) != CUDA_SUCCESS) return 2;
  std::puts("waiting");
  std::fflush(stdout);
  std::atomic<bool> right{true};
  std::vector<std::thread> threads;
  for (int i = 0; i < std::atoi(argv[2]); ++i)
    threads.emplace_back([i, &right] {
      if (!wait_somehow(i)) right = false;
    });
  for (std::thread& t : threads) t.join();
  std::puts(right ? "right" : "wrong");
  return right ? 0 : 1;
}
