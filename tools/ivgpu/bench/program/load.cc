// Loads that share a GPU with other processes. `ivgpu bench share` starts several load processes. At each start signal,
// a load repeats one operation for some seconds, then reports how often and how fast the operation ran.
#include "tools/ivgpu/bench/program/load.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>

#include "tools/ivgpu/bench/program/parts.h"
#include "tools/ivgpu/bench/program/timing.h"

namespace measure {
namespace {

// work(rounds, at): each thread computes `rounds` random numbers, and stores a number only in a rare case. The kernel's
// duration depends on GPU time: unlike a kernel that reads a clock, it takes longer while another process has the GPU.
constexpr const char* work_kernel = R"(.version 7.5
.target sm_75
.address_size 64

.visible .entry work(.param .u32 rounds, .param .u64 at)
{
  .reg .pred %p<3>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  ld.param.u32 %r1, [rounds];
  ld.param.u64 %rd1, [at];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r2, 1;
  mov.u32 %r3, 0;
AGAIN:
  mad.lo.u32 %r2, %r2, 1664525, 1013904223;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p1, %r3, %r1;
  @%p1 bra AGAIN;
  setp.ne.u32 %p2, %r2, 305419896;
  @%p2 bra END;
  st.global.u32 [%rd1], %r2;
END:
  ret;
}
)";

constexpr std::size_t copied = 16 << 20;

// The GPU needs about this long between two short consecutive kernels. On an H100 and an H200, 20 kernels of 20 us and
// a wait took 443.7 us.
constexpr double between_kernels_us = 2;

class Load {
 public:
  explicit Load(double rounds_per_us = 0) : device_(open_device()), rounds_per_us_(rounds_per_us) {
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module, work_kernel));
    CHECK(cuModuleGetFunction(&work_, module, "work"));
    CHECK(cuMemAlloc(&rare_, sizeof(std::uint32_t)));
    int multiprocessors = 0;
    CHECK(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device_.device));
    blocks_of_all_ = 2 * static_cast<unsigned>(multiprocessors);
  }

  void launch_empty() const { launch(device_.nothing); }
  // Launches a kernel that takes `us` microseconds, on one multiprocessor or on all of them.
  void launch_work(double us, bool on_all = false) const {
    launch_rounds(static_cast<std::uint32_t>(us * rounds_per_us_), on_all ? blocks_of_all_ : 1, on_all ? 1024 : 32);
  }
  void wait() const { CHECK(cuCtxSynchronize()); }
  // Increases the number of rounds until a kernel takes much longer than its launch. Then returns the rate of the
  // fastest of several kernels, since other processes may delay single kernels.
  double measured_rounds_per_us() const {
    constexpr double long_enough = 5000;
    constexpr std::uint32_t most_rounds = 1 << 29;
    constexpr int times = 5;
    std::uint32_t rounds = 1000;
    double took = 0;
    while ((took = time_of(rounds)) < long_enough)
      if ((rounds *= 4) > most_rounds) fail("the kernel that works", "it takes no time");
    for (int i = 0; i < times; ++i) took = std::min(took, time_of(rounds));
    return rounds / took;
  }
  void copy() {
    if (pinned_ == nullptr) {
      CHECK(cuMemAlloc(&memory_, copied));
      CHECK(cuMemHostAlloc(&pinned_, copied, 0));
    }
    CHECK(cuMemcpyHtoD(memory_, pinned_, copied));
  }
  // Makes a stream wait for a value, with a kernel behind the wait. Another thread writes the value after this time.
  void await(std::chrono::microseconds time) {
    if (word_ == nullptr) {
      CHECK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
      CHECK(cuMemHostAlloc(reinterpret_cast<void**>(&word_), sizeof *word_, CU_MEMHOSTALLOC_DEVICEMAP));
      CHECK(cuMemHostGetDevicePointer(&word_on_device_, word_, 0));
    }
    const std::uint32_t value = ++awaited_;
    CHECK(cuStreamWaitValue32(stream_, word_on_device_, value, CU_STREAM_WAIT_VALUE_EQ));
    launch(device_.nothing, stream_);
    std::thread writes([&] {
      std::this_thread::sleep_for(time);
      std::atomic_ref(*word_).store(value, std::memory_order_release);
    });
    CHECK(cuStreamSynchronize(stream_));
    writes.join();
  }

 private:
  void launch_rounds(std::uint32_t rounds, unsigned blocks, unsigned threads) const {
    CUdeviceptr at = rare_;
    void* parameters[] = {&rounds, &at};
    CHECK(cuLaunchKernel(work_, blocks, 1, 1, threads, 1, 1, 0, nullptr, parameters, nullptr));
  }
  double time_of(std::uint32_t rounds) const {
    const auto begin = Clock::now();
    launch_rounds(rounds, 1, 32);
    wait();
    return microseconds_since(begin);
  }

  Device device_;
  CUfunction work_ = nullptr;
  unsigned blocks_of_all_ = 0;  // blocks of 1024 threads that fill the GPU
  double rounds_per_us_;
  CUdeviceptr rare_ = 0, memory_ = 0;
  void* pinned_ = nullptr;
  CUstream stream_ = nullptr;
  std::uint32_t* word_ = nullptr;
  CUdeviceptr word_on_device_ = 0;
  std::uint32_t awaited_ = 0;
};

void compute_for(double us) {
  for (const auto begin = Clock::now(); microseconds_since(begin) < us;) continue;
}

// A kind of load. A call of `once` counts as `parts` operations. `every_us`: the period of the calls; 0: no pause.
struct Kind {
  const char* name;
  int parts;
  double every_us;
  std::function<void(Load&)> once;
};

const std::array<Kind, 9>& kinds() {
  static const std::array<Kind, 9> all = {{
      {"wait", 1, 0, [](Load& l) { l.launch_empty(), l.wait(); }},
      {"burst", 20, 0,
       [](Load& l) {
         for (int i = 0; i < 20; ++i) l.launch_empty();
         l.wait();
       }},
      {"busy", 20, 0,
       [](Load& l) {
         for (int i = 0; i < 20; ++i) l.launch_work(20 - between_kernels_us);
         l.wait();
       }},
      {"long", 4, 0,
       [](Load& l) {
         for (int i = 0; i < 4; ++i) l.launch_work(500);
         l.wait();
       }},
      // Resembles a training step of a small network in an eager framework: many short kernels, and a host that is
      // hardly faster than the GPU.
      {"train", 1, 0,
       [](Load& l) {
         for (int i = 0; i < 400; ++i) l.launch_work(4), compute_for(6);
         l.wait();
       }},
      {"infer", 1, 10000,
       [](Load& l) {
         for (int i = 0; i < 80; ++i) l.launch_work(4), compute_for(6);
         l.wait();
       }},
      // Keeps the GPU's queue from running empty.
      {"full", 8, 0,
       [](Load& l) {
         for (int i = 0; i < 8; ++i) l.launch_work(1250, true);
         l.wait();
       }},
      {"copy", 1, 0, [](Load& l) { l.copy(); }},
      {"await", 1, 0, [](Load& l) { l.await(std::chrono::milliseconds(5)); }},
  }};
  return all;
}

void run(const Kind& kind, Load& load, double seconds) {
  std::vector<double> times;
  const auto begin = Clock::now();
  double next = 0;
  do {
    if (const double early = next - microseconds_since(begin); early > 0)
      std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(early));
    next += kind.every_us;
    const auto start = Clock::now();
    kind.once(load);
    times.push_back(microseconds_since(start));
  } while (microseconds_since(begin) < seconds * 1e6);
  const double rate = static_cast<double>(times.size()) * kind.parts / microseconds_since(begin) * 1e6;
  std::sort(times.begin(), times.end());
  double sum = 0;
  for (const double time : times) sum += time;
  report_samples(
      kind.name, 0,
      {rate, sum / static_cast<double>(times.size()), times[times.size() / 2], times[times.size() * 99 / 100]});
}

}  // namespace

void speed() { report_samples("speed", 0, {Load().measured_rounds_per_us()}); }

void load(const std::string& name, double seconds, double rounds_per_us) {
  const auto kind = std::ranges::find_if(kinds(), [&](const Kind& one) { return name == one.name; });
  if (kind == kinds().end()) fail(name.c_str(), "there is no such load");
  if (!(rounds_per_us > 0)) fail(name.c_str(), "the GPU's speed is no positive number");
  Load load(rounds_per_us);
  kind->once(load);
  report_ready();
  while (must_go()) run(*kind, load, seconds);
}

}  // namespace measure
