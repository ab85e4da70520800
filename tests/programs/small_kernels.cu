// Many kernels that take hardly any time, as in programs whose speed depends on the cost of a launch: each way to wait
// for a kernel, launches back to back of one function, of several in turn and of new ones, launches of several threads,
// two streams in turn, and small copies. Each kernel changes cells by a function that does not commute with those of
// other kernels, so that a lost, repeated or reordered kernel changes the result, which the CPU computes as well.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "check.h"

namespace {

// ---- kernels -------------------------------------------------------------------------------------------------------

constexpr int several = 8, once_each = 64;
constexpr unsigned most_cells = 4096;  // of one stream; a launch changes the first blocks * threads of them

__host__ __device__ inline unsigned changed(unsigned cell, unsigned which, unsigned value) {
  return cell * (2 * which + 3) + value + which;
}

template <unsigned which>
__global__ void change(unsigned* cells, unsigned value) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  cells[i] = changed(cells[i], which, value);
}

// The same as change(), as functions of their own, so that each is launched for the first time by the test of new
// functions.
template <unsigned which>
__global__ void change_once(unsigned* cells, unsigned value) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  cells[i] = changed(cells[i], which, value);
}

__global__ void post(volatile unsigned* word, unsigned value) { *word = value; }

using Change = void (*)(unsigned*, unsigned);

template <unsigned... which>
const Change* table_of_changes(std::integer_sequence<unsigned, which...>) {
  static const Change table[] = {change<which>...};
  return table;
}

template <unsigned... which>
const Change* table_of_new_changes(std::integer_sequence<unsigned, which...>) {
  static const Change table[] = {change_once<which>...};
  return table;
}

struct Launch {
  unsigned which, blocks, threads, value;
};

// ---- results and times ---------------------------------------------------------------------------------------------

bool shows_times = false;

// Prints the time per operation on stderr, since stdout is the same on every GPU.
class Stopwatch {
 public:
  void show(const char* what, long operations) const {
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start_;
    if (shows_times) std::fprintf(stderr, "%-28s %9.3f us\n", what, took.count() / static_cast<double>(operations));
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Cells on the device, and the same cells as the CPU expects them.
class Cells {
 public:
  explicit Cells(const Change* functions) : functions_(functions), expected_(most_cells) { clear(); }
  ~Cells() { CHECK_CUDA(cudaFree(device_)); }
  Cells(const Cells&) = delete;
  Cells& operator=(const Cells&) = delete;

  void clear() {
    std::fill(expected_.begin(), expected_.end(), 1);
    CHECK_CUDA(cudaMemcpy(device_, expected_.data(), most_cells * sizeof(unsigned), cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaDeviceSynchronize());
  }
  void launch(const Launch& one, cudaStream_t stream) {
    functions_[one.which]<<<one.blocks, one.threads, 0, stream>>>(device_, one.value);
  }
  void expect(const Launch& one) {
    for (unsigned i = 0; i < one.blocks * one.threads; ++i) expected_[i] = changed(expected_[i], one.which, one.value);
  }
  // Precondition: all launches are complete.
  uint64_t checked(const char* what) const {
    const std::vector<unsigned> got = check::host_copy(device_, most_cells);
    check::compare(what, got, expected_);
    return check::checksum(got);
  }

 private:
  const Change* functions_;
  std::vector<unsigned> expected_;
  unsigned* device_ = check::device_buffer<unsigned>(most_cells);
};

// Launches `count` kernels, waits once, and compares.
template <class F>
void run_queue(const char* what, const Change* functions, long count, cudaStream_t stream, F nth) {
  Cells cells(functions);
  const Stopwatch watch;
  for (long n = 0; n < count; ++n) cells.launch(nth(static_cast<unsigned>(n)), stream);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaStreamSynchronize(stream));
  watch.show(what, count);
  for (long n = 0; n < count; ++n) cells.expect(nth(static_cast<unsigned>(n)));
  std::printf("small_kernels: %s: %ld launches, %016llx\n", what, count,
              static_cast<unsigned long long>(cells.checked(what)));
}

Launch kept_shape(unsigned n) {
  const unsigned which = n % several;
  return {which, which + 1, 32 * (which + 1), n};
}

// Shape n differs from the shapes before it, up to 16 * 256 of them.
Launch new_shape(unsigned which, unsigned n) { return {which, n / 256 % 16 + 1, n % 256 + 1, n}; }

// ---- the tests -----------------------------------------------------------------------------------------------------

// After each way to wait, the host must see what the kernel wrote into the host's memory.
class Waits {
 public:
  Waits() {
    CHECK_CUDA(cudaHostAlloc(&word_, sizeof *word_, cudaHostAllocMapped));
    CHECK_CUDA(cudaHostGetDevicePointer(&on_device_, const_cast<unsigned*>(word_), 0));
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    CHECK_CUDA(cudaEventCreate(&event_));
    *word_ = 0;
  }
  ~Waits() {
    CHECK_CUDA(cudaEventDestroy(event_));
    CHECK_CUDA(cudaStreamDestroy(stream_));
    CHECK_CUDA(cudaFreeHost(const_cast<unsigned*>(word_)));
  }
  Waits(const Waits&) = delete;
  Waits& operator=(const Waits&) = delete;

  template <class F>
  void run(const char* what, long rounds, int kernels, F wait) {
    const Stopwatch watch;
    for (long round = 0; round < rounds; ++round) {
      for (int k = 0; k < kernels; ++k) post<<<1, 1, 0, stream_>>>(on_device_, ++posted_);
      CHECK_CUDA(cudaGetLastError());
      wait();
      CHECK_THAT(*word_ == posted_, "%s: the host sees kernel %u, not %u.", what, *word_, posted_);
    }
    watch.show(what, rounds);
    std::printf("small_kernels: %s: %ld rounds of %d\n", what, rounds, kernels);
  }
  cudaStream_t stream() const { return stream_; }
  cudaEvent_t event() const { return event_; }

 private:
  volatile unsigned* word_ = nullptr;
  unsigned* on_device_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t event_ = nullptr;
  unsigned posted_ = 0;
};

void waits(long rounds) {
  Waits waits;
  const auto wait_for_stream = [&] { CHECK_CUDA(cudaStreamSynchronize(waits.stream())); };
  waits.run("first launch", 1, 1, wait_for_stream);
  waits.run("cudaStreamSynchronize", rounds, 1, wait_for_stream);
  waits.run("cudaDeviceSynchronize", rounds, 1, [] { CHECK_CUDA(cudaDeviceSynchronize()); });
  waits.run("cudaEventSynchronize", rounds, 1, [&] {
    CHECK_CUDA(cudaEventRecord(waits.event(), waits.stream()));
    CHECK_CUDA(cudaEventSynchronize(waits.event()));
  });
  waits.run("cudaStreamQuery", rounds, 1, [&] {
    cudaError_t state = cudaErrorNotReady;
    while ((state = cudaStreamQuery(waits.stream())) == cudaErrorNotReady) continue;
    CHECK_CUDA(state);
  });
  waits.run("20 launches", rounds, 20, wait_for_stream);
}

// Threads launch at the same time, each on its own stream and on its own cells.
void threads(const Change* functions, int count, long launches) {
  const std::string what = std::to_string(count) + " threads";
  const auto nth = [&](int me, long n) { return kept_shape(static_cast<unsigned>(n * count + me)); };
  std::vector<std::unique_ptr<Cells>> cells;
  std::vector<cudaStream_t> streams(static_cast<size_t>(count));
  for (cudaStream_t& stream : streams) {
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cells.push_back(std::make_unique<Cells>(functions));
  }
  const auto work = [&](int me) {
    const size_t mine = static_cast<size_t>(me);
    for (long n = 0; n < launches; ++n) cells[mine]->launch(nth(me, n), streams[mine]);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaStreamSynchronize(streams[mine]));
  };
  std::vector<std::thread> started;
  const Stopwatch watch;
  for (int me = 0; me < count; ++me) started.emplace_back(work, me);
  for (std::thread& thread : started) thread.join();
  watch.show(what.c_str(), launches * count);
  std::vector<uint64_t> sums;
  for (int me = 0; me < count; ++me) {
    Cells& own = *cells[static_cast<size_t>(me)];
    for (long n = 0; n < launches; ++n) own.expect(nth(me, n));
    sums.push_back(own.checked(what.c_str()));
    CHECK_CUDA(cudaStreamDestroy(streams[static_cast<size_t>(me)]));
  }
  std::printf("small_kernels: %s: %ld launches each, %016llx\n", what.c_str(), launches,
              static_cast<unsigned long long>(check::checksum(sums)));
}

// Kernels of two streams change the same cells in turn, ordered by events alone.
void two_streams(const Change* functions, long rounds) {
  cudaStream_t streams[2] = {};
  cudaEvent_t events[2] = {};
  for (int s = 0; s < 2; ++s) {
    CHECK_CUDA(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
    CHECK_CUDA(cudaEventCreateWithFlags(&events[s], cudaEventDisableTiming));
  }
  Cells cells(functions);
  const Stopwatch watch;
  for (long n = 0; n < rounds; ++n) {
    const int s = static_cast<int>(n % 2);
    cells.launch(kept_shape(static_cast<unsigned>(n)), streams[s]);
    CHECK_CUDA(cudaEventRecord(events[s], streams[s]));
    CHECK_CUDA(cudaStreamWaitEvent(streams[1 - s], events[s], 0));
  }
  for (const cudaStream_t stream : streams) CHECK_CUDA(cudaStreamSynchronize(stream));
  watch.show("two streams in turn", rounds);
  for (long n = 0; n < rounds; ++n) cells.expect(kept_shape(static_cast<unsigned>(n)));
  std::printf("small_kernels: two streams in turn: %ld launches, %016llx\n", rounds,
              static_cast<unsigned long long>(cells.checked("two streams in turn")));
  for (int s = 0; s < 2; ++s) {
    CHECK_CUDA(cudaEventDestroy(events[s]));
    CHECK_CUDA(cudaStreamDestroy(streams[s]));
  }
}

// A program that sends its input, launches one kernel and reads the result back, round after round.
void copies(const char* what, void* host, size_t bytes, long rounds) {
  const unsigned count = static_cast<unsigned>(bytes / sizeof(unsigned));
  unsigned* device = check::device_buffer<unsigned>(count);
  unsigned* const words = static_cast<unsigned*>(host);
  std::vector<unsigned> expected(count, 1);
  std::memcpy(host, expected.data(), bytes);
  const unsigned threads = count < 128 ? count : 128;
  const Stopwatch watch;
  for (long round = 0; round < rounds; ++round) {
    CHECK_CUDA(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
    change<1><<<count / threads, threads>>>(device, static_cast<unsigned>(round));
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
    words[round % count] += 1;  // the next copy must carry the host's change
  }
  watch.show(what, rounds);
  for (long round = 0; round < rounds; ++round) {
    for (unsigned& word : expected) word = changed(word, 1, static_cast<unsigned>(round));
    expected[static_cast<size_t>(round % count)] += 1;
  }
  check::compare(what, std::vector<unsigned>(words, words + count), expected);
  std::printf("small_kernels: %s: %ld rounds, %016llx\n", what, rounds,
              static_cast<unsigned long long>(check::checksum(expected)));
  CHECK_CUDA(cudaFree(device));
}

void all_copies(long rounds) {
  constexpr size_t most = 64 << 10;
  std::vector<unsigned> pageable(most / sizeof(unsigned));
  void* pinned = nullptr;
  CHECK_CUDA(cudaMallocHost(&pinned, most));
  copies("4 bytes", pageable.data(), 4, rounds);
  copies("4 KiB", pageable.data(), 4 << 10, rounds);
  copies("4 KiB pinned", pinned, 4 << 10, rounds);
  copies("64 KiB pinned", pinned, most, rounds);
  CHECK_CUDA(cudaFreeHost(pinned));
}

}  // namespace

int main(int argc, char** argv) {
  long launches = 400, rounds = 40, times = 0;
  check::parse(argc, argv, "small_kernels", "launches kernels that take hardly any time",
               {{"--launches", "launches back to back", &launches, 1, 1000000},
                {"--rounds", "waits and copies of each kind", &rounds, 1, 1000000},
                {"--times", "1 prints times on stderr", &times, 0, 1}});
  shows_times = times == 1;
  const Change* const functions = table_of_changes(std::make_integer_sequence<unsigned, several>());
  const Change* const new_functions = table_of_new_changes(std::make_integer_sequence<unsigned, once_each>());
  waits(rounds);
  cudaStream_t stream = nullptr;
  CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  run_queue("one function", functions, launches, stream, [](unsigned n) { return Launch{0, 1, 32, n}; });
  run_queue("eight functions", functions, launches, stream, kept_shape);
  run_queue("eight functions, new shapes", functions, launches, stream,
            [](unsigned n) { return new_shape(n % several, n / several); });
  run_queue("new functions", new_functions, once_each, stream, [](unsigned n) { return new_shape(n, n); });
  CHECK_CUDA(cudaStreamDestroy(stream));
  for (const int count : {2, 4, 8}) threads(functions, count, (launches + count - 1) / count);
  two_streams(functions, launches);
  all_copies(rounds);
  return 0;
}
