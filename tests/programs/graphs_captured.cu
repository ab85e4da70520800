// Stream capture: forks and joins from three host threads, captures of several threads beside a thread that works
// without a capture, events with the EXTERNAL flags, copies of variables on the stack, a solver's step that is replayed
// and compared with eager steps, printf, captures that fail, captures into a graph, and explicitly added nodes while a
// capture is open.
//
// CUDA does not synchronise calls about one graph, so threads that share a capture use a mutex.
#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>

#include "graphs.h"

namespace {

constexpr unsigned block = 64;

__global__ void scale(unsigned* data, unsigned n, unsigned factor) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = data[i] * factor + i;
}

__global__ void add_to(unsigned* to, const unsigned* from, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] += from[i];
}

// One step of Jacobi's method for a chain of springs. No product is added to another number, so the CPU rounds in the
// same way.
__global__ void relax(const float* in, float* out, const float* force, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0 || i + 1 >= n) return;
  out[i] = 0.5f * (in[i - 1] + in[i + 1] + force[i]);
}

// Compares floats as integers, since the bits of positive floats have the same order as the floats.
__global__ void largest_change(const float* in, const float* out, unsigned n, int* largest) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicMax(largest, __float_as_int(fabsf(out[i] - in[i])));
}

__global__ void say(unsigned* counter) { printf("a kernel: replay %u\n", ++*counter); }

unsigned blocks(unsigned n) { return (n + block - 1) / block; }

void launch_scale(cudaStream_t stream, unsigned* data, unsigned n, unsigned factor) {
  scale<<<blocks(n), block, 0, stream>>>(data, n, factor);
  CHECK_CUDA(cudaGetLastError());
}

void launch_add(cudaStream_t stream, unsigned* to, const unsigned* from, unsigned n) {
  add_to<<<blocks(n), block, 0, stream>>>(to, from, n);
  CHECK_CUDA(cudaGetLastError());
}

std::vector<unsigned> numbers(unsigned n, unsigned salt) {
  std::vector<unsigned> out(n);
  for (unsigned i = 0; i < n; ++i) out[i] = static_cast<unsigned>(check::small_number(i, salt));
  return out;
}

void scale_here(std::vector<unsigned>& data, unsigned factor) {
  for (unsigned i = 0; i < data.size(); ++i) data[i] = data[i] * factor + i;
}

void add_here(std::vector<unsigned>& to, const std::vector<unsigned>& from) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

// Launches each kernel once, since loading a kernel may wait for the device.
void load_kernels() {
  unsigned* word = check::device_copy<unsigned>({0});
  float* number = check::device_copy<float>({0});
  int* largest = check::device_copy<int>({0});
  scale<<<1, 1>>>(word, 0, 0);
  add_to<<<1, 1>>>(word, word, 0);
  relax<<<1, 1>>>(number, number, number, 0);
  largest_change<<<1, 1>>>(number, number, 0, largest);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_CUDA(cudaFree(word));
  CHECK_CUDA(cudaFree(number));
  CHECK_CUDA(cudaFree(largest));
}

// A capture that three threads fork into their own streams. The third thread's stream also waits for the first thread's
// stream.
class Forks {
 public:
  explicit Forks(unsigned n) : n_(n) {
    for (unsigned i = 0; i < 4; ++i) {
      here_[i] = numbers(n, i);
      parts_[i] = graphs::settled_copy(here_[i]);
    }
    sum_ = check::device_buffer<unsigned>(n);
    for (cudaStream_t& stream : branches_) stream = graphs::create_stream();
    for (cudaEvent_t& event : joined_) event = graphs::create_event();
  }
  ~Forks() {
    for (unsigned* part : parts_) CHECK_CUDA(cudaFree(part));
    CHECK_CUDA(cudaFree(sum_));
    for (const cudaStream_t stream : branches_) CHECK_CUDA(cudaStreamDestroy(stream));
    for (const cudaEvent_t event : joined_) CHECK_CUDA(cudaEventDestroy(event));
    for (const cudaEvent_t event : {forked_, middle_}) CHECK_CUDA(cudaEventDestroy(event));
    CHECK_CUDA(cudaStreamDestroy(origin_));
  }
  Forks(const Forks&) = delete;
  Forks& operator=(const Forks&) = delete;

  cudaGraph_t capture() {
    recorded_ = false;
    graphs::begin(origin_);
    CHECK_CUDA(cudaMemsetAsync(sum_, 0, n_ * sizeof(unsigned), origin_));
    CHECK_CUDA(cudaEventRecord(forked_, origin_));
    launch_scale(origin_, sum_, n_, 5);
    std::thread threads[] = {std::thread([this] { first(); }), std::thread([this] { second(); }),
                             std::thread([this] { third(); })};
    for (std::thread& thread : threads) thread.join();
    for (const cudaEvent_t event : joined_) CHECK_CUDA(cudaStreamWaitEvent(origin_, event, 0));
    for (const unsigned* part : parts_) launch_add(origin_, sum_, part, n_);
    return graphs::end(origin_);
  }

  void replay(cudaGraphExec_t exec) {
    graphs::launch_and_wait(exec, origin_);
    scale_here(here_[0], 2);
    scale_here(here_[3], 3);
    scale_here(here_[1], 2);
    scale_here(here_[1], 3);
    scale_here(here_[2], 2);
    add_here(here_[2], here_[0]);
    scale_here(here_[2], 4);
    std::vector<unsigned> sum(n_, 0);
    scale_here(sum, 5);
    for (const std::vector<unsigned>& part : here_) add_here(sum, part);
    check::compare("The sum of the forks", check::host_copy(sum_, n_), sum);
    checksum_ = check::checksum(sum);
  }
  unsigned long long checksum() const { return checksum_; }

 private:
  void first() {
    fork(0);
    with_lock([&] { launch_scale(branches_[0], parts_[0], n_, 2); });
    with_lock([&] { CHECK_CUDA(cudaEventRecord(middle_, branches_[0])); });
    recorded_ = true;
    with_lock([&] { launch_scale(branches_[0], parts_[3], n_, 3); });
    join(0);
  }
  void second() {
    fork(1);
    for (const unsigned factor : {2u, 3u}) with_lock([&] { launch_scale(branches_[1], parts_[1], n_, factor); });
    join(1);
  }
  void third() {
    fork(2);
    with_lock([&] { launch_scale(branches_[2], parts_[2], n_, 2); });
    while (!recorded_) std::this_thread::yield();
    with_lock([&] { CHECK_CUDA(cudaStreamWaitEvent(branches_[2], middle_, 0)); });
    with_lock([&] { launch_add(branches_[2], parts_[2], parts_[0], n_); });
    with_lock([&] { launch_scale(branches_[2], parts_[2], n_, 4); });
    join(2);
  }

  void fork(int branch) {
    with_lock([&] { CHECK_CUDA(cudaStreamWaitEvent(branches_[branch], forked_, 0)); });
  }
  void join(int branch) {
    with_lock([&] { CHECK_CUDA(cudaEventRecord(joined_[branch], branches_[branch])); });
  }
  template <class F>
  void with_lock(F&& call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    call();
  }

  const unsigned n_;
  const cudaStream_t origin_ = graphs::create_stream();
  const cudaEvent_t forked_ = graphs::create_event(), middle_ = graphs::create_event();
  cudaStream_t branches_[3];
  cudaEvent_t joined_[3];
  unsigned* parts_[4];
  unsigned* sum_ = nullptr;
  std::vector<unsigned> here_[4];
  std::mutex mutex_;
  std::atomic<bool> recorded_{false};
  unsigned long long checksum_ = 0;
};

void forks_of_threads(unsigned n, long rounds) {
  const char* const expected = "12 kernel, 1 memset, 16 edges";
  Forks forks(n);
  for (long round = 0; round < rounds; ++round) {
    const cudaGraph_t graph = forks.capture();
    const std::string summary = graphs::summary(graph);
    CHECK_THAT(summary == expected, "The forks gave %s, not %s.", summary.c_str(), expected);
    const cudaGraphExec_t exec = graphs::instantiate(graph);
    for (int i = 0; i < 3; ++i) forks.replay(exec);
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    CHECK_CUDA(cudaGraphDestroy(graph));
  }
  std::printf("forks of three threads: %s, checksum %016llx\n", expected, forks.checksum());
}

// Captures in mode THREAD_LOCAL in this thread; the copies use pinned memory.
void capture_locally(unsigned n, long rounds, unsigned salt) {
  const size_t bytes = n * sizeof(unsigned);
  const cudaStream_t stream = graphs::create_stream();
  auto* const pinned = graphs::pinned_buffer<unsigned>(n);
  auto* const data = check::device_buffer<unsigned>(n);
  for (long round = 0; round < rounds; ++round) {
    const auto factor = static_cast<unsigned>(salt + round + 2);
    graphs::begin(stream, cudaStreamCaptureModeThreadLocal);
    CHECK_CUDA(cudaMemcpyAsync(data, pinned, bytes, cudaMemcpyHostToDevice, stream));
    std::this_thread::yield();
    for (unsigned i = 0; i < 3; ++i) launch_scale(stream, data, n, factor + i);
    std::this_thread::yield();
    CHECK_CUDA(cudaMemcpyAsync(pinned, data, bytes, cudaMemcpyDeviceToHost, stream));
    const cudaGraph_t graph = graphs::end(stream);
    const cudaGraphExec_t exec = graphs::instantiate(graph);
    std::vector<unsigned> expected = numbers(n, salt);
    std::copy(expected.begin(), expected.end(), pinned);
    for (int replay = 0; replay < 2; ++replay) {
      graphs::launch_and_wait(exec, stream);
      for (unsigned i = 0; i < 3; ++i) scale_here(expected, factor + i);
      check::compare("A local capture", std::vector<unsigned>(pinned, pinned + n), expected);
    }
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    CHECK_CUDA(cudaGraphDestroy(graph));
  }
  CHECK_CUDA(cudaFree(data));
  CHECK_CUDA(cudaFreeHost(pinned));
  CHECK_CUDA(cudaStreamDestroy(stream));
}

// Allocates, copies, launches, waits and frees while other threads capture.
void work_eagerly(unsigned n, unsigned salt, cudaStream_t stream) {
  std::vector<unsigned> host = numbers(n, salt), expected = host;
  auto* const data = check::device_buffer<unsigned>(n);
  CHECK_CUDA(cudaMemcpyAsync(data, host.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice, stream));
  launch_scale(stream, data, n, salt);
  CHECK_CUDA(cudaMemcpyAsync(host.data(), data, n * sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  scale_here(expected, salt);
  check::compare("Eager work beside captures", host, expected);
  CHECK_CUDA(cudaFree(data));
}

void local_captures(unsigned n, long threads, long rounds) {
  std::atomic<bool> finished{false};
  std::thread eager([&] {
    const cudaStream_t stream = graphs::create_stream();
    for (unsigned turn = 0; !finished || turn < 3; ++turn) work_eagerly(n, turn, stream);
    CHECK_CUDA(cudaStreamDestroy(stream));
  });
  std::vector<std::thread> all;
  for (long i = 0; i < threads; ++i)
    all.emplace_back([=] { capture_locally(n, rounds, static_cast<unsigned>(i * 100)); });
  for (std::thread& thread : all) thread.join();
  finished = true;
  eager.join();
  std::printf("local captures: %ld threads, %ld rounds of each, beside eager work\n", threads, rounds);
}

// One graph records an event, for which another graph and a stream wait. Afterwards a graph waits for an event that a
// stream records.
void external_events(unsigned n) {
  graphs::Gate gate;
  const cudaStream_t first = graphs::create_stream(), second = graphs::create_stream(), third = graphs::create_stream();
  const cudaEvent_t done = graphs::create_event();
  std::vector<unsigned> expected = numbers(n, 3);
  unsigned* const data = graphs::settled_copy(expected);
  auto* const seen = graphs::pinned_buffer<unsigned>(n);
  auto* const seen_eagerly = graphs::pinned_buffer<unsigned>(n);
  const size_t bytes = n * sizeof(unsigned);

  graphs::begin(first);
  launch_scale(first, data, n, 3);
  CHECK_CUDA(cudaEventRecordWithFlags(done, first, cudaEventRecordExternal));
  const cudaGraph_t writes = graphs::end(first);
  graphs::begin(second);
  CHECK_CUDA(cudaStreamWaitEvent(second, done, cudaEventWaitExternal));
  CHECK_CUDA(cudaMemcpyAsync(seen, data, bytes, cudaMemcpyDeviceToHost, second));
  const cudaGraph_t reads = graphs::end(second);
  std::printf("external events: %s; %s\n", graphs::summary(writes).c_str(), graphs::summary(reads).c_str());
  const cudaGraphExec_t writer = graphs::instantiate(writes), reader = graphs::instantiate(reads);
  CHECK_CUDA(cudaGraphUpload(writer, first));
  CHECK_CUDA(cudaGraphUpload(reader, second));
  CHECK_CUDA(cudaStreamSynchronize(first));
  CHECK_CUDA(cudaStreamSynchronize(second));

  for (int round = 0; round < 6; ++round) {
    std::fill_n(seen, n, 0u);
    gate.close(first);
    if (round % 2 == 0) {
      CHECK_CUDA(cudaGraphLaunch(writer, first));
    } else {
      launch_scale(first, data, n, 3);
      CHECK_CUDA(cudaEventRecord(done, first));
    }
    CHECK_CUDA(cudaGraphLaunch(reader, second));
    CHECK_CUDA(cudaStreamWaitEvent(third, done, 0));
    CHECK_CUDA(cudaMemcpyAsync(seen_eagerly, data, bytes, cudaMemcpyDeviceToHost, third));
    const cudaError_t state = cudaStreamQuery(second);
    CHECK_THAT(state == cudaErrorNotReady, "A graph that waits for an event is %s.", cudaGetErrorName(state));
    (void)cudaGetLastError();
    CHECK_THAT(seen[n - 1] == 0, "A graph's copy ran before the event that it waits for.");
    gate.open();
    CHECK_CUDA(cudaEventSynchronize(done));
    CHECK_CUDA(cudaStreamSynchronize(second));
    CHECK_CUDA(cudaStreamSynchronize(third));
    scale_here(expected, 3);
    check::compare("Behind an external event", std::vector<unsigned>(seen, seen + n), expected);
    check::compare("Behind a graph's event", std::vector<unsigned>(seen_eagerly, seen_eagerly + n), expected);
  }
  std::printf("external events: checksum %016llx\n", static_cast<unsigned long long>(check::checksum(expected)));
  for (const cudaGraphExec_t exec : {writer, reader}) CHECK_CUDA(cudaGraphExecDestroy(exec));
  for (const cudaGraph_t graph : {writes, reads}) CHECK_CUDA(cudaGraphDestroy(graph));
  for (const cudaStream_t stream : {first, second, third}) CHECK_CUDA(cudaStreamDestroy(stream));
  CHECK_CUDA(cudaEventDestroy(done));
  CHECK_CUDA(cudaFree(data));
  CHECK_CUDA(cudaFreeHost(seen));
  CHECK_CUDA(cudaFreeHost(seen_eagerly));
}

// Both copies use variables on this function's stack. A replay reads and writes the variables' present values.
void stack_variables() {
  const cudaStream_t stream = graphs::create_stream();
  auto* const data = check::device_buffer<unsigned>(3);
  unsigned in[3] = {1, 2, 3}, out[3] = {0, 0, 0};
  graphs::begin(stream, cudaStreamCaptureModeGlobal);
  CHECK_CUDA(cudaMemcpyAsync(data, in, sizeof in, cudaMemcpyHostToDevice, stream));
  launch_scale(stream, data, 3, 10);
  CHECK_CUDA(cudaMemcpyAsync(out, data, sizeof out, cudaMemcpyDeviceToHost, stream));
  const cudaGraph_t graph = graphs::end(stream);
  const cudaGraphExec_t exec = graphs::instantiate(graph);
  CHECK_THAT(out[0] == 0 && out[2] == 0, "A captured copy ran.");
  for (unsigned round = 1; round <= 4; ++round) {
    for (unsigned i = 0; i < 3; ++i) in[i] = round * 7 + i;
    graphs::launch_and_wait(exec, stream);
    for (unsigned i = 0; i < 3; ++i)
      CHECK_THAT(out[i] == in[i] * 10 + i, "Round %u: word %u on the stack is %u, not %u.", round, i, out[i],
                 in[i] * 10 + i);
    std::printf("variables on the stack: %u %u %u\n", out[0], out[1], out[2]);
  }
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  CHECK_CUDA(cudaGraphDestroy(graph));
  CHECK_CUDA(cudaFree(data));
  CHECK_CUDA(cudaStreamDestroy(stream));
}

// Two relaxation steps, and the largest change of the second step.
class Solver {
 public:
  Solver(const std::vector<float>& force, cudaStream_t stream) : stream_(stream), n_(force.size()) {
    const std::vector<float> zeros(n_, 0.0f);
    a_ = graphs::settled_copy(zeros);
    b_ = graphs::settled_copy(zeros);
    force_ = graphs::settled_copy(force);
    largest_ = check::device_buffer<int>(1);
    change_ = graphs::pinned_buffer<float>(1);
  }
  ~Solver() {
    for (float* buffer : {a_, b_, force_}) CHECK_CUDA(cudaFree(buffer));
    CHECK_CUDA(cudaFree(largest_));
    CHECK_CUDA(cudaFreeHost(change_));
  }
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  void step() {
    CHECK_CUDA(cudaMemsetAsync(largest_, 0, sizeof(int), stream_));
    relax<<<blocks(n_), block, 0, stream_>>>(a_, b_, force_, n_);
    relax<<<blocks(n_), block, 0, stream_>>>(b_, a_, force_, n_);
    largest_change<<<blocks(n_), block, 0, stream_>>>(b_, a_, n_, largest_);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaMemcpyAsync(change_, largest_, sizeof(float), cudaMemcpyDeviceToHost, stream_));
  }
  std::vector<float> state() const { return check::host_copy(a_, n_); }
  float change() const { return *change_; }

 private:
  const cudaStream_t stream_;
  const unsigned n_;
  float *a_ = nullptr, *b_ = nullptr, *force_ = nullptr;
  int* largest_ = nullptr;
  float* change_ = nullptr;  // pinned
};

void relax_here(const std::vector<float>& in, std::vector<float>& out, const std::vector<float>& force) {
  for (size_t i = 1; i + 1 < in.size(); ++i) {
    const float sum = in[i - 1] + in[i + 1];
    out[i] = 0.5f * (sum + force[i]);
  }
}

void solver(unsigned n, long replays) {
  const cudaStream_t stream = graphs::create_stream(), eager_stream = graphs::create_stream();
  std::vector<float> force(n);
  for (unsigned i = 0; i < n; ++i) force[i] = static_cast<float>(check::small_number(i, 9)) / 64.0f;
  Solver captured(force, stream), eager(force, eager_stream);
  graphs::begin(stream);
  captured.step();
  const cudaGraph_t graph = graphs::end(stream);
  const cudaGraphExec_t exec = graphs::instantiate(graph);
  std::vector<float> a(n, 0.0f), b(n, 0.0f);
  for (long replay = 1; replay <= replays; ++replay) {
    CHECK_CUDA(cudaGraphLaunch(exec, stream));
    eager.step();
    relax_here(a, b, force);
    relax_here(b, a, force);
    if (replay % 50 != 0 && replay != replays) continue;
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaStreamSynchronize(eager_stream));
    float change = 0;
    for (unsigned i = 0; i < n; ++i) change = std::fmax(change, std::fabs(a[i] - b[i]));
    CHECK_THAT(captured.change() == eager.change() && captured.change() == change,
               "Step %ld: the change is %g by the graph, %g without it, and %g by the CPU.", replay,
               static_cast<double>(captured.change()), static_cast<double>(eager.change()),
               static_cast<double>(change));
    std::printf("solver: step %ld, change %.9g\n", replay, static_cast<double>(change));
  }
  check::compare("The solver's graph", captured.state(), a);
  check::compare("The solver without a graph", eager.state(), a);
  std::printf("solver: %s, checksum %016llx\n", graphs::summary(graph).c_str(),
              static_cast<unsigned long long>(check::checksum(a)));
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  CHECK_CUDA(cudaGraphDestroy(graph));
  CHECK_CUDA(cudaStreamDestroy(stream));
  CHECK_CUDA(cudaStreamDestroy(eager_stream));
}

void own_line(const char* text) {
  std::printf("%s\n", text);
  std::fflush(stdout);
}

void printing_kernels() {
  const cudaStream_t stream = graphs::create_stream();
  unsigned* const counter = graphs::settled_copy<unsigned>({0});
  graphs::begin(stream);
  say<<<1, 1, 0, stream>>>(counter);
  say<<<1, 1, 0, stream>>>(counter);
  CHECK_CUDA(cudaGetLastError());
  const cudaGraph_t graph = graphs::end(stream);
  const cudaGraphExec_t exec = graphs::instantiate(graph);
  own_line("the program: no kernel has printed");
  for (int i = 0; i < 3; ++i) {
    graphs::launch_and_wait(exec, stream);
    own_line("the program: behind a replay");
  }
  CHECK_CUDA(cudaGraphLaunch(exec, stream));
  CHECK_CUDA(cudaGraphLaunch(exec, stream));
  CHECK_CUDA(cudaDeviceSynchronize());
  own_line("the program: behind two replays");
  CHECK_THAT(check::host_copy(counter, 1)[0] == 10, "The kernels that print ran %u times.",
             check::host_copy(counter, 1)[0]);
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  CHECK_CUDA(cudaGraphDestroy(graph));
  CHECK_CUDA(cudaFree(counter));
  CHECK_CUDA(cudaStreamDestroy(stream));
}

// Captures that fail. The test checks the error of the invalidating call and the error at the capture's end, and then
// makes a valid capture.
class Failures {
 public:
  Failures() : data_(graphs::settled_copy<unsigned>({1, 1})) {
    CHECK_CUDA(cudaStreamCreate(&blocking_));
    CHECK_CUDA(cudaEventRecord(outside_, other_));
    CHECK_CUDA(cudaDeviceSynchronize());
  }
  ~Failures() {
    CHECK_CUDA(cudaFree(data_));
    for (const cudaStream_t stream : {stream_, other_, blocking_}) CHECK_CUDA(cudaStreamDestroy(stream));
    for (const cudaEvent_t event : {event_, outside_}) CHECK_CUDA(cudaEventDestroy(event));
  }
  Failures(const Failures&) = delete;
  Failures& operator=(const Failures&) = delete;

  void run() {
    begin(stream_);
    fork();
    launch_scale(other_, data_, 2, 2);
    end_badly("end with an unjoined stream", stream_, cudaErrorStreamCaptureUnjoined);

    invalidate("synchronize the captured stream", cudaErrorStreamCaptureUnsupported,
               [&] { return cudaStreamSynchronize(stream_); });
    invalidate("query the captured stream", cudaErrorStreamCaptureUnsupported,
               [&] { return cudaStreamQuery(stream_); });
    invalidate("synchronize the device", cudaErrorStreamCaptureUnsupported, [] { return cudaDeviceSynchronize(); });
    invalidate("wait for an event of no capture", cudaErrorStreamCaptureIsolation,
               [&] { return cudaStreamWaitEvent(stream_, outside_, 0); });
    invalidate(
        "allocate in a global capture", cudaErrorStreamCaptureUnsupported,
        [] {
          void* memory = nullptr;
          return cudaMalloc(&memory, 64);
        },
        cudaStreamCaptureModeGlobal);
    invalidate("end the joined stream", cudaErrorStreamCaptureUnmatched, [&] {
      fork();
      cudaGraph_t graph = nullptr;
      return cudaStreamEndCapture(other_, &graph);
    });
    legacy_stream();
    wrong_thread();
    two_captures();
  }

 private:
  void begin(cudaStream_t stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed) {
    graphs::begin(stream, mode);
    launch_scale(stream, data_, 2, 2);
  }

  void fork() {
    CHECK_CUDA(cudaEventRecord(event_, stream_));
    CHECK_CUDA(cudaStreamWaitEvent(other_, event_, 0));
  }

  void end_badly(const char* what, cudaStream_t stream, cudaError_t expected) {
    cudaGraph_t graph = nullptr;
    graphs::expect(what, cudaStreamEndCapture(stream, &graph), expected);
    CHECK_THAT(graph == nullptr, "%s gave a graph.", what);
    for (const cudaStream_t one : {stream_, other_, blocking_}) {
      cudaStreamCaptureStatus status{};
      CHECK_CUDA(cudaStreamIsCapturing(one, &status));
      CHECK_THAT(status == cudaStreamCaptureStatusNone, "%s: a stream is still captured.", what);
    }
    capture_again(what, stream);
  }

  // Checks that no work of the failed captures has run, and that a new capture succeeds.
  void capture_again(const char* what, cudaStream_t stream) {
    const std::vector<unsigned> before = check::host_copy(data_, 2);
    begin(stream);
    graphs::run_once(graphs::end(stream), stream);
    std::vector<unsigned> expected = before;
    scale_here(expected, 2);
    check::compare(what, check::host_copy(data_, 2), expected);
    ++captures_;
  }

  template <class F>
  void invalidate(const char* what, cudaError_t expected, F&& call,
                  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed) {
    begin(stream_, mode);
    graphs::expect(what, call(), expected);
    cudaStreamCaptureStatus status{};
    CHECK_CUDA(cudaStreamIsCapturing(stream_, &status));
    CHECK_THAT(status == cudaStreamCaptureStatusInvalidated, "%s: the capture goes on.", what);
    end_badly("  its end", stream_, cudaErrorStreamCaptureInvalidated);
  }

  // The legacy stream would wait for a captured stream that is not non-blocking.
  void legacy_stream() {
    begin(blocking_);
    scale<<<1, 2>>>(data_, 2, 2);
    graphs::expect("launch into the legacy stream", cudaGetLastError(), cudaErrorStreamCaptureImplicit);
    end_badly("  its end", blocking_, cudaErrorStreamCaptureInvalidated);
    begin(blocking_);
    unsigned words[2];
    graphs::expect("copy in the legacy stream", cudaMemcpy(words, data_, sizeof words, cudaMemcpyDeviceToHost),
                   cudaErrorStreamCaptureImplicit);
    end_badly("  its end", blocking_, cudaErrorStreamCaptureInvalidated);
  }

  void wrong_thread() {
    begin(stream_, cudaStreamCaptureModeThreadLocal);
    cudaError_t result = cudaSuccess;
    std::thread([&] {
      cudaGraph_t graph = nullptr;
      result = cudaStreamEndCapture(stream_, &graph);
    }).join();
    graphs::expect("end by another thread", result, cudaErrorStreamCaptureWrongThread);
    capture_again("Behind a wrong thread's end", stream_);
  }

  void two_captures() {
    begin(stream_);
    begin(other_);
    CHECK_CUDA(cudaEventRecord(event_, stream_));
    graphs::expect("wait for another capture", cudaStreamWaitEvent(other_, event_, 0), cudaErrorStreamCaptureMerge);
    for (const cudaStream_t stream : {other_, stream_}) {
      cudaGraph_t graph = nullptr;
      graphs::expect("  its end", cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    }
    capture_again("Behind two captures", stream_);
    std::printf("good captures between the failed ones: %d\n", captures_);
  }

  unsigned* data_;
  const cudaStream_t stream_ = graphs::create_stream(), other_ = graphs::create_stream();
  cudaStream_t blocking_ = nullptr;
  const cudaEvent_t event_ = graphs::create_event(), outside_ = graphs::create_event();
  int captures_ = 0;
};

cudaGraphNode_t add_kernel(cudaGraph_t graph, const graphs::Nodes& behind, unsigned* to, const unsigned* from,
                           unsigned n) {
  cudaGraphNode_t node = nullptr;
  void* arguments[] = {&to, &from, &n};
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(add_to);
  params.gridDim = dim3(blocks(n));
  params.blockDim = dim3(block);
  params.kernelParams = arguments;
  CHECK_CUDA(cudaGraphAddKernelNode(&node, graph, behind.data(), behind.size(), &params));
  return node;
}

// Two captures into one graph: the first after an explicitly added node, the second after the first capture's last
// node.
void capture_into_a_graph(unsigned n) {
  const cudaStream_t stream = graphs::create_stream();
  std::vector<unsigned> expected = numbers(n, 1);
  const std::vector<unsigned> addend = numbers(n, 2);
  unsigned *const data = graphs::settled_copy(expected), *const other = graphs::settled_copy(addend);
  const cudaGraph_t graph = graphs::create();
  cudaGraphNode_t last = add_kernel(graph, {}, data, other, n);
  for (const unsigned factor : {3u, 5u}) {
    CHECK_CUDA(cudaStreamBeginCaptureToGraph(stream, graph, &last, nullptr, 1, cudaStreamCaptureModeRelaxed));
    launch_scale(stream, data, n, factor);
    cudaStreamCaptureStatus status{};
    const cudaGraphNode_t* tips = nullptr;
    const cudaGraphEdgeData* edges = nullptr;
    size_t count = 0;
    cudaGraph_t asked = nullptr;
    CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status, nullptr, &asked, &tips, &edges, &count));
    CHECK_THAT(asked == graph && count == 1, "A capture into a graph has another graph, or %zu last nodes.", count);
    last = tips[0];
    CHECK_THAT(graphs::end(stream) == graph, "A capture into a graph gave another graph.");
  }
  std::printf("into a graph: %s\n", graphs::summary(graph).c_str());
  graphs::run_once(graph, stream);
  add_here(expected, addend);
  for (const unsigned factor : {3u, 5u}) scale_here(expected, factor);
  check::compare("Captures into a graph", check::host_copy(data, n), expected);
  CHECK_CUDA(cudaFree(data));
  CHECK_CUDA(cudaFree(other));
  CHECK_CUDA(cudaStreamDestroy(stream));
}

struct CaptureInfo {
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  graphs::Nodes tips;
};

CaptureInfo capture_info(cudaStream_t stream) {
  CaptureInfo info;
  cudaStreamCaptureStatus status{};
  const cudaGraphNode_t* tips = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  size_t count = 0;
  CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status, &info.id, &info.graph, &tips, &edges, &count));
  CHECK_THAT(status == cudaStreamCaptureStatusActive, "The capture has status %d.", static_cast<int>(status));
  info.tips.assign(tips, tips + count);
  return info;
}

// An explicitly added node replaces the stream's last node, and another explicit node is added beside it.
void nodes_within_a_capture(unsigned n) {
  const cudaStream_t stream = graphs::create_stream();
  std::vector<unsigned> expected = numbers(n, 4), addend = numbers(n, 5);
  unsigned *const data = graphs::settled_copy(expected), *const other = graphs::settled_copy(addend);
  graphs::begin(stream);
  launch_scale(stream, data, n, 2);
  const CaptureInfo first = capture_info(stream);
  cudaGraphNode_t middle = add_kernel(first.graph, first.tips, data, other, n);
  CHECK_CUDA(cudaStreamUpdateCaptureDependencies(stream, &middle, nullptr, 1, cudaStreamSetCaptureDependencies));
  launch_scale(stream, data, n, 3);
  cudaGraphNode_t beside = nullptr;
  cudaMemsetParams fill{};
  fill.dst = other;
  fill.value = 7;
  fill.elementSize = sizeof(unsigned);
  fill.width = n;
  fill.height = 1;
  CHECK_CUDA(cudaGraphAddMemsetNode(&beside, first.graph, &middle, 1, &fill));
  CHECK_CUDA(cudaStreamUpdateCaptureDependencies(stream, &beside, nullptr, 1, cudaStreamAddCaptureDependencies));
  const CaptureInfo second = capture_info(stream);
  CHECK_THAT(second.id == first.id && second.graph == first.graph, "The capture has another id or graph.");
  std::printf("by hand within a capture: last nodes %zu, then %zu\n", first.tips.size(), second.tips.size());
  launch_add(stream, data, other, n);
  const cudaGraph_t graph = graphs::end(stream);
  CHECK_THAT(graph == first.graph, "The capture's end gave another graph.");
  std::printf("by hand within a capture: %s\n", graphs::summary(graph).c_str());
  const cudaGraphExec_t exec = graphs::instantiate(graph);
  for (int replay = 0; replay < 3; ++replay) {
    graphs::launch_and_wait(exec, stream);
    scale_here(expected, 2);
    add_here(expected, addend);
    scale_here(expected, 3);
    std::fill(addend.begin(), addend.end(), 7u);
    add_here(expected, addend);
    check::compare("Nodes by hand within a capture", check::host_copy(data, n), expected);
  }
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  CHECK_CUDA(cudaGraphDestroy(graph));
  CHECK_CUDA(cudaFree(data));
  CHECK_CUDA(cudaFree(other));
  CHECK_CUDA(cudaStreamDestroy(stream));
}

}  // namespace

int main(int argc, char** argv) {
  long n = 500, rounds = 8, threads = 4, replays = 200;
  check::parse(argc, argv, "graphs_captured", "captures streams and replays the graphs",
               {{"--n", "elements", &n, 16, 1000000},
                {"--rounds", "captures of each kind", &rounds, 1, 100000},
                {"--threads", "threads that capture at once", &threads, 1, 64},
                {"--replays", "replays of the solver's step", &replays, 1, 1000000}});
  const auto size = static_cast<unsigned>(n);
  load_kernels();
  forks_of_threads(size, rounds);
  local_captures(size, threads, rounds);
  external_events(size);
  stack_variables();
  solver(size, replays);
  printing_kernels();
  Failures().run();
  capture_into_a_graph(size);
  nodes_within_a_capture(size);
  return 0;
}
