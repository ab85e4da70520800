// Many host threads, each of which acts as a small program: allocations, copies from pageable and pinned memory,
// kernels on its own stream and on the default stream, events, frees. All threads make their first call at once, and
// all add to one counter. The program runs with eight threads, and with more threads than a session has channels.
// `threads_ptds` is the same source with a default stream per thread.
#include <thread>

#include "check.h"

namespace {

constexpr int block = 64;

__global__ void mix(const unsigned* in, unsigned* out, int n, unsigned salt) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * 2654435761u + salt + i;
}

// Gives up after a bounded count, so that a program that failed does not leave a kernel running forever.
__global__ void hold(const volatile int* released) {
  for (int i = 0; i < (1 << 27) && *released == 0; ++i) {
  }
}

__global__ void count(unsigned long long* counter, unsigned long long value) { atomicAdd(counter, value); }

unsigned mixed(unsigned in, unsigned salt, int i) { return in * 2654435761u + salt + static_cast<unsigned>(i); }

struct Shared {
  unsigned long long* counter;  // device
  int threads, rounds;
  int n;
};

// Uses the thread's own stream, with only asynchronous calls, from pinned memory to pinned memory.
void round_on_own_stream(const Shared& shared, cudaStream_t stream, unsigned salt, unsigned* pinned) {
  const int n = shared.n;
  const size_t bytes = n * sizeof(unsigned);
  auto* in = check::device_buffer<unsigned>(n);
  auto* out = check::device_buffer<unsigned>(n);
  for (int i = 0; i < n; ++i) pinned[i] = salt ^ static_cast<unsigned>(i);
  CHECK_CUDA(cudaMemcpyAsync(in, pinned, bytes, cudaMemcpyHostToDevice, stream));
  mix<<<(n + block - 1) / block, block, 0, stream>>>(in, out, n, salt);
  mix<<<(n + block - 1) / block, block, 0, stream>>>(out, in, n, salt + 1);
  CHECK_CUDA(cudaMemcpyAsync(pinned + n, in, bytes, cudaMemcpyDeviceToHost, stream));
  count<<<1, 1, 0, stream>>>(shared.counter, salt);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaStreamSynchronize(stream));
  for (int i = 0; i < n; ++i) {
    const unsigned expected = mixed(mixed(pinned[i], salt, i), salt + 1, i);
    CHECK_THAT(pinned[n + i] == expected, "Own stream, salt %u: element %d is %u, the CPU says %u.", salt, i,
               pinned[n + i], expected);
  }
  CHECK_CUDA(cudaFree(in));
  CHECK_CUDA(cudaFree(out));
}

// Uses the default stream, legacy or per-thread, from pageable memory.
void round_on_default_stream(const Shared& shared, unsigned salt) {
  const int n = shared.n;
  std::vector<unsigned> host(n);
  for (int i = 0; i < n; ++i) host[i] = salt * 7 + static_cast<unsigned>(i);
  unsigned* in = check::device_copy(host);
  auto* out = check::device_buffer<unsigned>(n);
  CHECK_CUDA(cudaMemsetAsync(out, 0, n * sizeof(unsigned)));
  mix<<<(n + block - 1) / block, block>>>(in, out, n, salt);
  count<<<1, 1>>>(shared.counter, 1);
  CHECK_CUDA(cudaGetLastError());
  const std::vector<unsigned> got = check::host_copy(out, n);
  for (int i = 0; i < n; ++i) {
    CHECK_THAT(got[i] == mixed(host[i], salt, i), "Default stream, salt %u: element %d is %u, the CPU says %u.", salt,
               i, got[i], mixed(host[i], salt, i));
  }
  CHECK_CUDA(cudaFree(in));
  CHECK_CUDA(cudaFree(out));
}

void run_thread(const Shared& shared, int me) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  unsigned* pinned = nullptr;
  CHECK_CUDA(cudaMallocHost(&pinned, 2 * shared.n * sizeof(unsigned)));
  CHECK_CUDA(cudaStreamCreateWithFlags(&stream, me % 2 == 0 ? cudaStreamNonBlocking : cudaStreamDefault));
  CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (int round = 0; round < shared.rounds; ++round) {
    const unsigned salt = static_cast<unsigned>(me * 1000 + round);
    round_on_own_stream(shared, stream, salt, pinned);
    round_on_default_stream(shared, salt);
    CHECK_CUDA(cudaEventRecord(event, stream));
    CHECK_CUDA(cudaStreamWaitEvent(nullptr, event, 0));
  }
  CHECK_THAT(cudaSetDevice(12345) == cudaErrorInvalidDevice, "Thread %d set device 12345.", me);
  CHECK_THAT(cudaPeekAtLastError() == cudaErrorInvalidDevice, "Thread %d has not its own last error.", me);
  CHECK_CUDA(cudaStreamDestroy(stream));
  CHECK_CUDA(cudaEventDestroy(event));
  CHECK_CUDA(cudaFreeHost(pinned));
}

void run(const Shared& shared) {
  CHECK_CUDA(cudaMemset(shared.counter, 0, sizeof(unsigned long long)));
  CHECK_CUDA(cudaDeviceSynchronize());
  std::vector<std::thread> threads;
  for (int i = 0; i < shared.threads; ++i) threads.emplace_back([&, i] { run_thread(shared, i); });
  for (std::thread& thread : threads) thread.join();
  CHECK_CUDA(cudaPeekAtLastError());
  CHECK_CUDA(cudaDeviceSynchronize());
  const unsigned long long total = check::host_copy(shared.counter, 1)[0];
  unsigned long long expected = 0;
  for (int me = 0; me < shared.threads; ++me) {
    for (int round = 0; round < shared.rounds; ++round) expected += me * 1000 + round + 1;
  }
  CHECK_THAT(total == expected, "The threads counted to %llu, not %llu.", total, expected);
  std::printf("threads: %d threads, %d rounds, counted to %llu\n", shared.threads, shared.rounds, total);
}

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
constexpr bool own_default_stream = true;
#else
constexpr bool own_default_stream = false;
#endif

// While a kernel in this thread's default stream waits for the host, another thread uses its own default stream.
void default_streams() {
  int* released = nullptr;
  CHECK_CUDA(cudaHostAlloc(&released, sizeof(int), cudaHostAllocMapped));
  *released = 1;
  hold<<<1, 1>>>(released);  // loads the kernel
  CHECK_CUDA(cudaDeviceSynchronize());
  *static_cast<volatile int*>(released) = 0;
  hold<<<1, 1>>>(released);
  CHECK_CUDA(cudaGetLastError());
  const cudaError_t mine = cudaStreamQuery(nullptr);
  cudaError_t others = cudaErrorUnknown;
  std::thread([&] { others = cudaStreamQuery(nullptr); }).join();
  __atomic_store_n(released, 1, __ATOMIC_RELEASE);
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_THAT(mine == cudaErrorNotReady, "A default stream with a kernel in it gave %s.", cudaGetErrorName(mine));
  CHECK_THAT(others == (own_default_stream ? cudaSuccess : cudaErrorNotReady),
             "Another thread's default stream gave %s.", cudaGetErrorName(others));
  (void)cudaGetLastError();
  CHECK_CUDA(cudaFreeHost(released));
  std::printf("threads: default stream: %s\n", own_default_stream ? "one for each thread" : "one for all");
}

// Threads start and end repeatedly: a thread's resources are free for the next thread.
void short_lived(const Shared& shared, int count_of_threads) {
  for (int i = 0; i < count_of_threads; ++i) {
    std::thread([&] { round_on_default_stream(shared, static_cast<unsigned>(i)); }).join();
  }
  std::printf("threads: %d came and went\n", count_of_threads);
}

// The first calls of the process come from all threads at once.
void start_together(int threads) {
  std::vector<std::thread> starters;
  for (int i = 0; i < threads; ++i) {
    starters.emplace_back([] {
      int* value = check::device_buffer<int>(1);
      CHECK_CUDA(cudaMemset(value, 0, sizeof(int)));
      CHECK_CUDA(cudaFree(value));
    });
  }
  for (std::thread& starter : starters) starter.join();
}

}  // namespace

int main(int argc, char** argv) {
  long threads = 8, rounds = 6, more = 40, n = 200;
  check::parse(argc, argv, "threads", "uses one GPU from many host threads",
               {{"--threads", "host threads", &threads, 1, 1000},
                {"--more", "host threads of the second run", &more, 1, 1000},
                {"--rounds", "rounds of each thread", &rounds, 1, 100000},
                {"--n", "elements of each thread's buffers", &n, 1, 1000000}});
  start_together(static_cast<int>(threads));
  Shared shared = {};
  shared.counter = check::device_buffer<unsigned long long>(1);
  shared.threads = static_cast<int>(threads);
  shared.rounds = static_cast<int>(rounds);
  shared.n = static_cast<int>(n);
  default_streams();
  run(shared);
  shared.threads = static_cast<int>(more);
  shared.rounds = static_cast<int>(rounds + 2) / 3;
  run(shared);
  short_lived(shared, static_cast<int>(more));
  CHECK_CUDA(cudaFree(shared.counter));
  return 0;
}
