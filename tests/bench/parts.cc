// Measures the parts of a launch and of a synchronisation, each part alone, and the whole without stamps.
// tools/dev/parts runs this program natively, and through ivgpu with tests/bench/parts_driver.cc behind the worker.
// Prints a line per figure: name, median and 99th percentile, in nanoseconds.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "ring/api/cuda.h"
#include "ring/queue/record_ring.h"
#include "tests/bench/stamps.h"
#include "tests/shared_word.h"

namespace {

using parts::Stamps, parts::now;
using Clock = std::chrono::steady_clock;

// An empty kernel with eight parameters.
constexpr const char* image = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 d, .param .f32 e, .param .f32 f,
                        .param .u32 g, .param .u32 h) { ret; }
)";

void* library = nullptr;

template <class F>
F find(const char* name) {
  void* entry = dlsym(library, name);
  if (entry == nullptr) {
    std::fprintf(stderr, "parts: the driver has no %s\n", name);
    std::exit(1);
  }
  return reinterpret_cast<F>(entry);
}
#define CU(fn) find<decltype(&::fn)>(#fn)

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "parts: %s returned %d\n", what, static_cast<int>(result));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

double nanoseconds_per_tick() {
  const auto start = Clock::now();
  const std::uint64_t ticks = now();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const std::chrono::duration<double, std::nano> passed = Clock::now() - start;
  return passed.count() / static_cast<double>(now() - ticks);
}

// Samples of one figure, in ticks. A sample may be negative, as a difference of two cores' clocks.
class Figure {
 public:
  explicit Figure(const char* name) : name_(name) {}
  void add(std::uint64_t from, std::uint64_t to) { samples_.push_back(static_cast<std::int64_t>(to - from)); }
  void print(double scale) {
    std::sort(samples_.begin(), samples_.end());
    const auto at = [&](std::size_t percent) {
      return scale * static_cast<double>(samples_[samples_.size() * percent / 100]);
    };
    if (!samples_.empty()) std::printf("%s %.0f %.0f\n", name_, at(50), at(99));
  }

 private:
  const char* name_;
  std::vector<std::int64_t> samples_;
};

class Program {
 public:
  explicit Program(int samples)
      : samples_(samples), launch_(CU(cuLaunchKernel)), wait_(CU(cuStreamSynchronize)), record_(CU(cuEventRecord)) {
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    void* pinned = nullptr;
    CHECK(CU(cuInit)(0));
    CHECK(CU(cuDevicePrimaryCtxRetain)(&context, 0));
    CHECK(CU(cuCtxSetCurrent)(context));
    CHECK(CU(cuModuleLoadData)(&module, image));
    CHECK(CU(cuModuleGetFunction)(&kernel_, module, "nothing"));
    CHECK(CU(cuStreamCreate)(&stream_, CU_STREAM_NON_BLOCKING));
    CHECK(CU(cuEventCreate)(&event_, CU_EVENT_DISABLE_TIMING));
    CHECK(CU(cuMemHostAlloc)(&pinned, queue_length * sizeof(Stamps), 0));
    std::memset(pinned, 0, queue_length * sizeof(Stamps));
    stamps_ = static_cast<Stamps*>(pinned);
  }

  // True if parts_driver writes the stamps. Natively this program writes them, around the calls.
  bool behind_worker() {
    launch(&stamps_[0]);
    CHECK(wait_(stream_));
    return worker_ = stamps_[0].wait_left != 0;
  }

  // Measures a launch and a wait as a whole, without stamps.
  void launch_and_wait() {
    Figure whole("launch_wait");
    each([&] {
      const std::uint64_t start = now();
      launch(nullptr);
      CHECK(wait_(stream_));
      whole.add(start, now());
    });
    print(whole);
  }

  void wait_alone() {
    Figure whole("wait");
    launch(nullptr);
    CHECK(wait_(stream_));
    each([&] {
      const std::uint64_t start = now();
      CHECK(wait_(stream_));
      whole.add(start, now());
    });
    print(whole);
  }

  void parts_of_launch_and_wait() {
    Figure call("launch_call"), to_driver("launch_to_driver"), driver("launch_driver"), between("between"),
        waiting("launch_wait_driver"), reply("launch_reply");
    Stamps& s = stamps_[0];
    each([&] {
      const std::uint64_t start = now();
      launch(&s);
      const std::uint64_t called = now();
      CHECK(wait_(stream_));
      const std::uint64_t end = now();
      if (!worker_) s = {start, called, called, end};
      call.add(start, called);
      to_driver.add(start, s.launch_entered);
      driver.add(s.launch_entered, s.launch_left);
      between.add(s.launch_left, s.wait_entered);
      waiting.add(s.wait_entered, s.wait_left);
      reply.add(s.wait_left, end);
    });
    for (Figure* figure : {&call, &to_driver, &driver, &between, &waiting, &reply}) print(*figure);
  }

  // Measures waits without outstanding work. The launch before each wait passes the address of the stamps.
  void parts_of_wait() {
    Figure to_driver("wait_to_driver"), driver("wait_driver"), reply("wait_reply");
    Stamps& s = stamps_[0];
    launch(&s);
    CHECK(wait_(stream_));
    each([&] {
      const std::uint64_t start = now();
      CHECK(wait_(stream_));
      const std::uint64_t end = now();
      if (!worker_) s.wait_entered = start, s.wait_left = end;
      to_driver.add(start, s.wait_entered);
      driver.add(s.wait_entered, s.wait_left);
      reply.add(s.wait_left, end);
    });
    for (Figure* figure : {&to_driver, &driver, &reply}) print(*figure);
  }

  // Measures the worker's own time per record: from the driver's return to its next entry, while the next record is
  // already in the ring.
  void worker_alone() {
    Figure gap("worker_record");
    each([&] {
      for (int i = 0; i < queue_length; ++i) launch(&stamps_[i]);
      CHECK(wait_(stream_));
      for (int i = queue_length / 2; i < queue_length; ++i)
        gap.add(stamps_[i - 1].launch_left, stamps_[i].launch_entered);
    });
    if (worker_) print(gap);
  }

  // Measures the guest's time per posted record of a CALL line.
  void posted_call() {
    Figure call("posted_call");
    for (int i = 0; i < samples_; ++i) {
      if (i % 64 == 0) CHECK(wait_(stream_));
      const std::uint64_t start = now();
      CHECK(record_(event_, stream_));
      call.add(start, now());
    }
    CHECK(wait_(stream_));
    print(call);
  }

 private:
  static constexpr int queue_length = 32;

  template <class F>
  void each(F f) {
    const int warm = samples_ / 10 + 1;
    for (int i = 0; i < samples_ + warm; ++i) f();
  }
  void print(Figure& figure) const { figure.print(scale_); }

  void launch(Stamps* stamps) {
    std::uint64_t at = reinterpret_cast<std::uint64_t>(stamps), none = 0;
    int number = 0;
    float real = 0;
    void* params[] = {&at, &none, &none, &number, &real, &real, &number, &number};
    CHECK(launch_(kernel_, 1, 1, 1, 32, 1, 1, 0, stream_, params, nullptr));
  }

  const int samples_;
  const double scale_ = nanoseconds_per_tick();
  decltype(&::cuLaunchKernel) launch_;
  decltype(&::cuStreamSynchronize) wait_;
  decltype(&::cuEventRecord) record_;
  CUfunction kernel_ = nullptr;
  CUstream stream_ = nullptr;
  CUevent event_ = nullptr;
  Stamps* stamps_ = nullptr;
  bool worker_ = false;
};

// Measures the ring alone, between two polling threads: a record of 48 bytes, and a word back.
void ring_round_trip(int samples) {
  static SharedWord<std::uint32_t> tail, head;
  alignas(64) static std::atomic<std::uint64_t> answer{0};
  static std::array<std::byte, 1 << 16> bytes{};
  const ring::RingView view{tail, head, {bytes.data(), bytes.size()}};
  const auto rounds = static_cast<std::uint64_t>(samples);
  std::thread taker([&] {
    alignas(16) static std::array<std::byte, ring::max_record> into{};
    ring::Consumer consumer(view);
    std::span<const std::byte> record;
    for (std::uint64_t n = 1; n <= rounds; ++n) {
      while (consumer.take(into, record) != ring::Peer::Ok) __builtin_ia32_pause();
      answer.store(n, std::memory_order_release);
    }
  });
  ring::Producer producer(view);
  Figure trip("ring_round_trip");
  for (std::uint64_t n = 1; n <= rounds; ++n) {
    const std::uint64_t start = now();
    std::byte* at = nullptr;
    if (producer.reserve(48, at) != ring::Peer::Ok) std::exit(1);
    const ring::RecordHeader header{.bytes = 48, .call = 1, .flags = 0, .position = n};
    std::memcpy(at, &header, sizeof header);
    producer.publish();
    while (answer.load(std::memory_order_acquire) != n) __builtin_ia32_pause();
    trip.add(start, now());
  }
  taker.join();
  trip.print(nanoseconds_per_tick());
}

}  // namespace

int main(int argc, char** argv) {
  const int samples = argc > 1 && std::strcmp(argv[1], "--quick") == 0 ? 50 : 5000;
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "parts: %s\n", dlerror());
    return 1;
  }
  Program program(samples);
  std::printf("behind_worker %d 0\n", program.behind_worker() ? 1 : 0);
  program.launch_and_wait();
  program.parts_of_launch_and_wait();
  program.wait_alone();
  program.parts_of_wait();
  program.worker_alone();
  program.posted_call();
  ring_round_trip(samples);
}
