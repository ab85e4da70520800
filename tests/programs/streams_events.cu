// Streams and events: asynchronous copies from and to pinned memory on several streams, events that measure time, order
// work and are polled, priorities, and the order between the NULL stream and blocking or non-blocking streams.
//
// The kernel `hold` makes the checks strict: it waits for a word that the host writes. While it waits, work that is
// ordered behind it must not be done, and all other work must be; neither depends on the machine's speed. The program
// launches every kernel once before the first hold, and allocates all memory before it, since loading and allocating
// may wait for the device. No check needs two kernels to run at once, which CUDA does not promise.
#include <chrono>
#include <thread>

#include "check.h"

namespace {

constexpr int stream_count = 4;
constexpr int block = 128;

__global__ void scale(const int* in, int* out, int n, int factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * factor + i;
}

// Gives up after a bounded count, so that a program that failed does not leave a kernel running forever.
__global__ void hold(const volatile int* released, int* gave_up) {
  for (int i = 0; i < (1 << 22); ++i) {
    if (*released != 0) return;
    __nanosleep(50000);
  }
  *gave_up = 1;
}

__global__ void append(int* log, int value) { log[++log[0]] = value; }

struct Shared {
  cudaStream_t streams[stream_count];  // blocking
  cudaStream_t free_stream;            // cudaStreamNonBlocking
  cudaEvent_t start, middle, stop;
  int* released;  // pinned
  int* log_out;   // pinned
  int* gave_up;   // pinned
  int* log;       // on the device: a count, then values
};

constexpr int log_size = 16;

void wait_until_done(const char* what, cudaError_t (*query)(const Shared&), const Shared& shared) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (;;) {
    const cudaError_t state = query(shared);
    if (state == cudaSuccess) return;
    CHECK_THAT(state == cudaErrorNotReady, "%s gave %s.", what, cudaGetErrorName(state));
    CHECK_THAT(std::chrono::steady_clock::now() < limit, "%s said cudaErrorNotReady for a minute.", what);
    std::this_thread::yield();
  }
}

void expect(const char* what, cudaError_t got, cudaError_t expected) {
  CHECK_THAT(got == expected, "%s gave %s, not %s.", what, cudaGetErrorName(got), cudaGetErrorName(expected));
  (void)cudaGetLastError();  // otherwise cudaErrorNotReady would seem to be the error of a launch
}

void begin_hold(const Shared& shared, cudaStream_t stream) {
  *const_cast<volatile int*>(shared.released) = 0;
  int* released = nullptr;
  int* gave_up = nullptr;
  CHECK_CUDA(cudaHostGetDevicePointer(&released, shared.released, 0));
  CHECK_CUDA(cudaHostGetDevicePointer(&gave_up, shared.gave_up, 0));
  hold<<<1, 1, 0, stream>>>(released, gave_up);
  CHECK_CUDA(cudaGetLastError());
}

void release(const Shared& shared) { __atomic_store_n(shared.released, 1, __ATOMIC_RELEASE); }

void clear_log(const Shared& shared) {
  CHECK_CUDA(cudaMemset(shared.log, 0, log_size * sizeof(int)));
  CHECK_CUDA(cudaDeviceSynchronize());
}

void append_on(const Shared& shared, cudaStream_t stream, int value) {
  append<<<1, 1, 0, stream>>>(shared.log, value);
  CHECK_CUDA(cudaGetLastError());
}

void check_log(const char* what, const Shared& shared, std::initializer_list<int> expected) {
  CHECK_THAT(*const_cast<volatile int*>(shared.gave_up) == 0, "%s: the kernel did not see the host's word.", what);
  const std::vector<int> log = check::host_copy(shared.log, log_size);
  CHECK_THAT(log[0] == static_cast<int>(expected.size()), "%s: %d kernels ran, not %zu.", what, log[0],
             expected.size());
  int place = 1;
  for (const int value : expected) {
    CHECK_THAT(log[place] == value, "%s: kernel %d ran in place %d.", what, log[place], place);
    ++place;
  }
  std::printf("streams_events: %s:", what);
  for (const int value : expected) std::printf(" %d", value);
  std::printf("\n");
}

Shared create() {
  Shared shared = {};
  for (cudaStream_t& stream : shared.streams) CHECK_CUDA(cudaStreamCreate(&stream));
  CHECK_CUDA(cudaStreamCreateWithFlags(&shared.free_stream, cudaStreamNonBlocking));
  CHECK_CUDA(cudaEventCreate(&shared.start));
  CHECK_CUDA(cudaEventCreateWithFlags(&shared.middle, cudaEventDisableTiming));
  CHECK_CUDA(cudaEventCreate(&shared.stop));
  CHECK_CUDA(cudaHostAlloc(&shared.released, sizeof(int), cudaHostAllocMapped));
  CHECK_CUDA(cudaHostAlloc(&shared.gave_up, sizeof(int), cudaHostAllocMapped));
  CHECK_CUDA(cudaHostAlloc(&shared.log_out, log_size * sizeof(int), cudaHostAllocDefault));
  shared.log = check::device_buffer<int>(log_size);
  *shared.gave_up = 0;
  std::memset(shared.log_out, 0, log_size * sizeof(int));
  begin_hold(shared, nullptr);
  release(shared);
  CHECK_CUDA(cudaDeviceSynchronize());
  clear_log(shared);
  append_on(shared, nullptr, 0);
  CHECK_CUDA(cudaDeviceSynchronize());
  return shared;
}

void destroy(const Shared& shared) {
  for (const cudaStream_t stream : shared.streams) CHECK_CUDA(cudaStreamDestroy(stream));
  CHECK_CUDA(cudaStreamDestroy(shared.free_stream));
  CHECK_CUDA(cudaEventDestroy(shared.start));
  CHECK_CUDA(cudaEventDestroy(shared.middle));
  CHECK_CUDA(cudaEventDestroy(shared.stop));
  CHECK_CUDA(cudaFreeHost(shared.released));
  CHECK_CUDA(cudaFreeHost(shared.gave_up));
  CHECK_CUDA(cudaFreeHost(shared.log_out));
  CHECK_CUDA(cudaFree(shared.log));
}

// Each stream processes every fourth chunk by a copy to the device, a kernel and a copy back. Two rounds use the same
// device memory, so the second round's copy to the device must follow the first round's kernel and copy back.
void pipelined_copies(const Shared& shared, int n) {
  constexpr int rounds = 2;
  const int chunk = (n + stream_count - 1) / stream_count;
  const size_t bytes = static_cast<size_t>(chunk) * sizeof(int);
  const size_t total = static_cast<size_t>(chunk) * stream_count * rounds;
  int *in = nullptr, *out = nullptr;
  CHECK_CUDA(cudaHostAlloc(&in, total * sizeof(int), cudaHostAllocDefault));
  CHECK_CUDA(cudaMallocHost(&out, total * sizeof(int)));
  int* device_in = check::device_buffer<int>(static_cast<size_t>(chunk) * stream_count);
  int* device_out = check::device_buffer<int>(static_cast<size_t>(chunk) * stream_count);
  for (size_t i = 0; i < total; ++i) in[i] = check::small_number(i, 5);
  std::memset(out, 0xff, total * sizeof(int));

  CHECK_CUDA(cudaEventRecord(shared.start, nullptr));
  for (int round = 0; round < rounds; ++round) {
    for (int s = 0; s < stream_count; ++s) {
      const size_t device_at = static_cast<size_t>(s) * chunk;
      const size_t host_at = (static_cast<size_t>(round) * stream_count + s) * chunk;
      const cudaStream_t stream = shared.streams[s];
      CHECK_CUDA(cudaMemcpyAsync(device_in + device_at, in + host_at, bytes, cudaMemcpyHostToDevice, stream));
      scale<<<(chunk + block - 1) / block, block, 0, stream>>>(device_in + device_at, device_out + device_at, chunk,
                                                               s + 2);
      CHECK_CUDA(cudaGetLastError());
      CHECK_CUDA(cudaMemcpyAsync(out + host_at, device_out + device_at, bytes, cudaMemcpyDeviceToHost, stream));
    }
  }
  CHECK_CUDA(cudaEventRecord(shared.stop, nullptr));
  CHECK_CUDA(cudaEventSynchronize(shared.stop));
  float milliseconds = -1;
  CHECK_CUDA(cudaEventElapsedTime(&milliseconds, shared.start, shared.stop));
  CHECK_THAT(milliseconds >= 0 && milliseconds < 1e6f, "cudaEventElapsedTime gave %g ms.",
             static_cast<double>(milliseconds));

  for (size_t i = 0; i < total; ++i) {
    const int at = static_cast<int>(i % chunk);
    const int expected = in[i] * static_cast<int>(i / chunk % stream_count + 2) + at;
    CHECK_THAT(out[i] == expected, "Copy on a stream: element %zu is %d, the CPU says %d.", i, out[i], expected);
  }
  std::printf("streams_events: %d streams, %zu elements each, checksum %016llx\n", stream_count,
              static_cast<size_t>(chunk) * rounds,
              static_cast<unsigned long long>(check::checksum(out, total * sizeof(int))));
  CHECK_CUDA(cudaFreeHost(in));
  CHECK_CUDA(cudaFreeHost(out));
  CHECK_CUDA(cudaFree(device_in));
  CHECK_CUDA(cudaFree(device_out));
}

// Events chain streams 0 to 3 and the non-blocking stream, in an order that differs from the order of their creation.
// The second wait uses the driver's own entry point.
void waits_order_streams(const Shared& shared) {
  static const auto stream_wait_event = DRIVER_ENTRY(cuStreamWaitEvent);
  clear_log(shared);
  begin_hold(shared, shared.streams[2]);
  CHECK_CUDA(cudaEventRecord(shared.start, shared.streams[2]));
  append_on(shared, shared.streams[2], 1);
  CHECK_CUDA(cudaEventRecord(shared.middle, shared.streams[2]));
  CHECK_CUDA(cudaStreamWaitEvent(shared.streams[0], shared.middle, 0));
  append_on(shared, shared.streams[0], 2);
  CHECK_CUDA(cudaEventRecord(shared.middle, shared.streams[0]));
  CHECK_DRIVER(stream_wait_event(shared.free_stream, shared.middle, 0));
  append_on(shared, shared.free_stream, 3);
  CHECK_CUDA(
      cudaMemcpyAsync(shared.log_out, shared.log, log_size * sizeof(int), cudaMemcpyDeviceToHost, shared.free_stream));
  CHECK_CUDA(cudaEventRecord(shared.stop, shared.free_stream));

  float milliseconds = 0;
  expect("cudaEventQuery of an event behind a running kernel", cudaEventQuery(shared.stop), cudaErrorNotReady);
  expect("cudaStreamQuery of a stream that waits", cudaStreamQuery(shared.free_stream), cudaErrorNotReady);
  expect("cudaStreamQuery of an idle stream", cudaStreamQuery(shared.streams[1]), cudaSuccess);
  expect("cudaEventElapsedTime before the end", cudaEventElapsedTime(&milliseconds, shared.start, shared.stop),
         cudaErrorNotReady);
  CHECK_THAT(*const_cast<volatile int*>(shared.log_out) != 3, "A copy ran before the kernel it is ordered behind.");
  release(shared);
  wait_until_done(
      "cudaEventQuery", [](const Shared& s) { return cudaEventQuery(s.stop); }, shared);
  (void)cudaGetLastError();
  CHECK_THAT(shared.log_out[0] == 3 && shared.log_out[3] == 3, "The event was done before the copy in front of it.");
  CHECK_CUDA(cudaEventElapsedTime(&milliseconds, shared.start, shared.stop));
  CHECK_THAT(milliseconds >= 0, "cudaEventElapsedTime gave %g ms.", static_cast<double>(milliseconds));
  check_log("order by events", shared, {1, 2, 3});
}

// A wait uses the last record at the time when the wait was posted. A later record does not change the wait.
void wait_binds_to_the_last_record(const Shared& shared) {
  clear_log(shared);
  CHECK_CUDA(cudaEventRecord(shared.middle, shared.streams[0]));
  CHECK_CUDA(cudaStreamWaitEvent(shared.streams[1], shared.middle, 0));
  begin_hold(shared, shared.streams[0]);
  CHECK_CUDA(cudaEventRecord(shared.middle, shared.streams[0]));
  append_on(shared, shared.streams[0], 1);
  CHECK_CUDA(cudaStreamSynchronize(shared.streams[1]));
  expect("cudaEventQuery after the second record", cudaEventQuery(shared.middle), cudaErrorNotReady);
  release(shared);
  wait_until_done(
      "cudaStreamQuery", [](const Shared& s) { return cudaStreamQuery(s.streams[0]); }, shared);
  (void)cudaGetLastError();
  check_log("a wait binds to the last record", shared, {1});
}

// Work in the NULL stream follows earlier work in blocking streams and precedes their later work.
void null_stream_and_blocking_streams(const Shared& shared) {
  clear_log(shared);
  begin_hold(shared, shared.streams[3]);
  append_on(shared, shared.streams[3], 1);
  append_on(shared, nullptr, 2);
  append_on(shared, shared.streams[1], 3);
  expect("cudaStreamQuery of the NULL stream behind a blocking stream", cudaStreamQuery(nullptr), cudaErrorNotReady);
  expect("cudaStreamQuery of a blocking stream behind the NULL stream", cudaStreamQuery(shared.streams[1]),
         cudaErrorNotReady);
  release(shared);
  CHECK_CUDA(cudaDeviceSynchronize());
  check_log("NULL stream and blocking streams", shared, {1, 2, 3});
}

void null_stream_and_non_blocking_stream(const Shared& shared) {
  clear_log(shared);
  begin_hold(shared, shared.free_stream);
  append_on(shared, shared.free_stream, 2);
  expect("cudaStreamQuery of the NULL stream beside a non-blocking stream", cudaStreamQuery(nullptr), cudaSuccess);
  CHECK_CUDA(cudaStreamSynchronize(nullptr));
  expect("cudaStreamQuery of the non-blocking stream", cudaStreamQuery(shared.free_stream), cudaErrorNotReady);
  release(shared);
  CHECK_CUDA(cudaStreamSynchronize(shared.free_stream));
  check_log("NULL stream and a non-blocking stream", shared, {2});
}

void priorities(const Shared& shared) {
  int least = 0, greatest = 0;
  CHECK_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CHECK_THAT(greatest <= least, "The priority range runs from %d to %d.", least, greatest);
  clear_log(shared);
  cudaStream_t streams[2];
  const int asked[2] = {greatest - 100, least};  // the first priority is out of range, so the driver clamps it
  const int given[2] = {greatest, least};
  for (int i = 0; i < 2; ++i) {
    CHECK_CUDA(cudaStreamCreateWithPriority(&streams[i], cudaStreamNonBlocking, asked[i]));
    int priority = 1000;
    CHECK_CUDA(cudaStreamGetPriority(streams[i], &priority));
    CHECK_THAT(priority == given[i], "A stream made with priority %d says %d.", asked[i], priority);
    unsigned flags = 0;
    CHECK_CUDA(cudaStreamGetFlags(streams[i], &flags));
    CHECK_THAT(flags == cudaStreamNonBlocking, "A non-blocking stream says flags %u.", flags);
    append_on(shared, streams[i], i + 1);
    CHECK_CUDA(cudaStreamSynchronize(streams[i]));
  }
  for (const cudaStream_t stream : streams) CHECK_CUDA(cudaStreamDestroy(stream));
  check_log("priorities", shared, {1, 2});
}

// A stream and an event are destroyed while earlier work is queued. The work must complete, and waits on the event must
// continue.
void destroyed_while_busy(const Shared& shared) {
  clear_log(shared);
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  CHECK_CUDA(cudaStreamCreate(&stream));
  CHECK_CUDA(cudaEventCreate(&event));
  begin_hold(shared, stream);
  append_on(shared, stream, 1);
  CHECK_CUDA(cudaEventRecord(event, stream));
  CHECK_CUDA(cudaStreamWaitEvent(shared.free_stream, event, 0));
  CHECK_CUDA(cudaEventDestroy(event));
  append_on(shared, shared.free_stream, 2);
  expect("cudaStreamQuery of a stream that waits for a destroyed event", cudaStreamQuery(shared.free_stream),
         cudaErrorNotReady);
  release(shared);
  CHECK_CUDA(cudaStreamDestroy(stream));
  CHECK_CUDA(cudaDeviceSynchronize());
  check_log("destroyed while busy", shared, {1, 2});
}

}  // namespace

int main(int argc, char** argv) {
  long n = 60000;
  check::parse(argc, argv, "streams_events", "checks streams, events, pinned memory and asynchronous copies",
               {{"--n", "elements copied on all streams together, twice", &n, stream_count, 10000000}});
  const Shared shared = create();
  pipelined_copies(shared, static_cast<int>(n));
  waits_order_streams(shared);
  wait_binds_to_the_last_record(shared);
  null_stream_and_blocking_streams(shared);
  null_stream_and_non_blocking_stream(shared);
  priorities(shared);
  destroyed_while_busy(shared);
  destroy(shared);
  return 0;
}
