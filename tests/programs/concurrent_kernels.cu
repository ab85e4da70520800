// Kernels on many streams, each of which watches the clock for a given time. A last kernel waits for all of them by
// events and adds up their results. CUDA does not promise that kernels run at the same time, so the program does not
// check that. Every kernel must have run for its time before the last kernel. The first kernel takes longest, so that a
// missing wait is detected where kernels do run at the same time.
#include "check.h"

namespace {

constexpr int most_streams = 32;

struct Result {
  long long ticks;
  int kernel;
};

__global__ void watch_the_clock(Result* result, int kernel, long long ticks) {
  const long long start = clock64();
  long long passed = 0;
  while (passed < ticks) passed = clock64() - start;
  result->ticks = passed;
  result->kernel = kernel;
}

__global__ void add_up(const Result* results, int count, long long ticks, int* sum) {
  __shared__ int part[32];
  int own = 0;
  for (int i = threadIdx.x; i < count; i += 32) own += results[i].ticks >= ticks * (count - i) ? results[i].kernel : 0;
  part[threadIdx.x] = own;
  for (int half = 16; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *sum = part[0];
}

}  // namespace

int main(int argc, char** argv) {
  long kernels = 24, rounds = 4, ticks = 4000;
  check::parse(
      argc, argv, "concurrent_kernels", "runs kernels on many streams",
      {{"--kernels", "kernels, each on a stream of its own", &kernels, 1, most_streams},
       {"--rounds", "rounds of them", &rounds, 1, 1000000},
       {"--ticks", "clock ticks that the last takes, the one before twice as many, and so on", &ticks, 1, 1000000000}});
  const int count = static_cast<int>(kernels);
  cudaStream_t streams[most_streams] = {};
  cudaEvent_t events[most_streams] = {};
  for (int i = 0; i < count; ++i) {
    CHECK_CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    CHECK_CUDA(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
  }
  Result* results = check::device_buffer<Result>(kernels);
  int *sum = check::device_buffer<int>(1), *pinned = nullptr;
  CHECK_CUDA(cudaMallocHost(&pinned, sizeof(int)));

  for (long round = 0; round < rounds; ++round) {
    CHECK_CUDA(cudaMemset(results, 0, kernels * sizeof(Result)));
    CHECK_CUDA(cudaDeviceSynchronize());
    const cudaStream_t last = streams[count - 1];
    for (int i = 0; i < count; ++i) {
      watch_the_clock<<<1, 1, 0, streams[i]>>>(results + i, i + 1 + static_cast<int>(round), ticks * (count - i));
      CHECK_CUDA(cudaGetLastError());
      CHECK_CUDA(cudaEventRecord(events[i], streams[i]));
      CHECK_CUDA(cudaStreamWaitEvent(last, events[i], 0));
    }
    add_up<<<1, 32, 0, last>>>(results, count, ticks, sum);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaMemcpyAsync(pinned, sum, sizeof(int), cudaMemcpyDeviceToHost, last));
    CHECK_CUDA(cudaStreamSynchronize(last));
    const int expected = count * (count + 1) / 2 + count * static_cast<int>(round);
    CHECK_THAT(*pinned == expected, "Round %ld: the kernels add up to %d, not %d.", round, *pinned, expected);
    std::printf("concurrent_kernels: %d kernels, sum %d\n", count, *pinned);
  }

  for (int i = 0; i < count; ++i) {
    CHECK_CUDA(cudaStreamDestroy(streams[i]));
    CHECK_CUDA(cudaEventDestroy(events[i]));
  }
  CHECK_CUDA(cudaFreeHost(pinned));
  CHECK_CUDA(cudaFree(results));
  CHECK_CUDA(cudaFree(sum));
  return 0;
}
