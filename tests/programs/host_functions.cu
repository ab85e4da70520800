// Functions of the program in stream order: cudaLaunchHostFunc and cudaStreamAddCallback. In each round on each of
// eight streams, a kernel runs, a copy to pinned memory follows, a host function reads the copy and writes a value, and
// a second kernel reads that value. In one stream a function waits until the main thread has launched all work. Calls
// of CUDA inside a function are refused, and the functions run one at a time.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "check.h"

namespace {

constexpr int streams = 8, rounds = 25;

__global__ void add(unsigned* to, const volatile unsigned* by) { *to += *by; }

struct Lane {
  cudaStream_t stream = nullptr;
  unsigned* sum = nullptr;     // on the device
  unsigned* seen = nullptr;    // pinned; the copy of the sum
  unsigned* addend = nullptr;  // pinned; the value that the next kernel adds
  unsigned expected = 0;
  int calls = 0, wrong = 0, callbacks = 0;
};

std::atomic<int> inside{0}, most{0};
std::atomic<bool> launched{false};
cudaError_t refused[3];

void look(void* argument) {
  Lane& lane = *static_cast<Lane*>(argument);
  most = std::max(most.load(), ++inside);
  lane.expected += *lane.addend;
  lane.wrong += *lane.seen != lane.expected;
  *lane.addend = *lane.seen % 7 + 1;
  ++lane.calls;
  --inside;
}

void ask(void*) {
  void* memory = nullptr;
  refused[0] = cudaMalloc(&memory, 64);
  refused[1] = cudaStreamQuery(nullptr);
  refused[2] = cudaStreamSynchronize(nullptr);
}

void block(void*) {
  while (!launched) std::this_thread::yield();
}

void CUDART_CB finished(cudaStream_t, cudaError_t status, void* argument) {
  static_cast<Lane*>(argument)->callbacks += status == cudaSuccess;
}

}  // namespace

int main() {
  std::vector<Lane> lanes(streams);
  for (Lane& lane : lanes) {
    CHECK_CUDA(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaMalloc(&lane.sum, sizeof(unsigned)));
    CHECK_CUDA(cudaMallocHost(&lane.seen, sizeof(unsigned)));
    CHECK_CUDA(cudaMallocHost(&lane.addend, sizeof(unsigned)));
    CHECK_CUDA(cudaMemsetAsync(lane.sum, 0, sizeof(unsigned), lane.stream));
    *lane.addend = 1;
  }
  CHECK_CUDA(cudaDeviceSynchronize());
  add<<<1, 1>>>(lanes[0].sum, lanes[0].sum);  // a kernel's first launch loads it, which waits for the streams
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_CUDA(cudaLaunchHostFunc(lanes[3].stream, block, nullptr));
  for (int round = 0; round < rounds; ++round)
    for (Lane& lane : lanes) {
      add<<<1, 1, 0, lane.stream>>>(lane.sum, lane.addend);
      CHECK_CUDA(cudaMemcpyAsync(lane.seen, lane.sum, sizeof(unsigned), cudaMemcpyDeviceToHost, lane.stream));
      CHECK_CUDA(cudaLaunchHostFunc(lane.stream, look, &lane));
    }
  for (Lane& lane : lanes) CHECK_CUDA(cudaStreamAddCallback(lane.stream, finished, &lane, 0));
  CHECK_CUDA(cudaLaunchHostFunc(lanes[0].stream, ask, nullptr));
  launched = true;
  CHECK_CUDA(cudaDeviceSynchronize());
  for (const Lane& lane : lanes)
    std::printf("%d calls, %d wrong, sum %u, callbacks %d\n", lane.calls, lane.wrong, lane.expected, lane.callbacks);
  std::printf("at a time: %d\n", most.load());
  for (const cudaError_t error : refused) std::printf("inside: %s\n", cudaGetErrorName(error));
  return 0;
}
