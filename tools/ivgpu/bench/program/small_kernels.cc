// Measures kernels that take no time: waits for one, launches back to back in several patterns, small copies, and the
// duration of asynchronous calls.
#include <atomic>
#include <barrier>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>

#include "tools/ivgpu/bench/program/parts.h"
#include "tools/ivgpu/bench/program/timing.h"

namespace measure {
namespace {

// ---- kernels -------------------------------------------------------------------------------------------------------

constexpr int several = 8;  // functions in turn

// A module of `count` empty kernels, k0, k1 and so on, with the parameters of the kernel `nothing`.
std::string ptx_of_empty_kernels(int count) {
  std::string ptx = ".version 7.5\n.target sm_75\n.address_size 64\n";
  for (int k = 0; k < count; ++k)
    ptx += ".visible .entry k" + std::to_string(k) +
           "(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 d, .param .f32 e, .param .f32 f, .param .u32 g, "
           ".param .u32 h) { ret; }\n";
  return ptx;
}

std::vector<CUfunction> functions_of(CUmodule module, int count) {
  std::vector<CUfunction> functions(static_cast<std::size_t>(count));
  for (int k = 0; k < count; ++k)
    CHECK(cuModuleGetFunction(&functions[static_cast<std::size_t>(k)], module, ("k" + std::to_string(k)).c_str()));
  return functions;
}

// delay(rounds, at): takes about 5 ns a round on an H200, and stores a number only in a rare case.
constexpr const char* delay_kernel = R"(.version 7.5
.target sm_75
.address_size 64

.visible .entry delay(.param .u32 rounds, .param .u64 at)
{
  .reg .pred %p<3>;
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  ld.param.u32 %r1, [rounds];
  ld.param.u64 %rd1, [at];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r2, 1;
NEXT:
  mad.lo.u32 %r2, %r2, 22695477, 1;
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra NEXT;
  setp.ne.u32 %p2, %r2, 271828182;
  @%p2 bra END;
  st.global.u32 [%rd1], %r2;
END:
  ret;
}
)";

struct Shape {
  unsigned blocks, threads;
};

// The shape that each of the functions in turn keeps.
Shape kept_shape(std::uint64_t function) {
  return {static_cast<unsigned>(function) + 1, 32 * (static_cast<unsigned>(function) + 1)};
}

// Shape number n. The first 10,240 shapes differ from each other, and none is large enough to take time.
Shape new_shape(std::uint64_t n) {
  return {static_cast<unsigned>(n / 256 % 40) + 1, static_cast<unsigned>(n % 256) + 1};
}

// Launches an empty kernel with parameters that depend on `number`.
void launch_numbered(CUfunction function, Shape shape, CUstream stream, std::uint64_t number) {
  CUdeviceptr a = number, b = number * 3, c = 0;
  int d = static_cast<int>(number & 0xFFFF), g = d + 1, h = 3;
  float e = static_cast<float>(d), f = 5;
  void* parameters[] = {&a, &b, &c, &d, &e, &f, &g, &h};
  CHECK(cuLaunchKernel(function, shape.blocks, 1, 1, shape.threads, 1, 1, 0, stream, parameters, nullptr));
}

// Reports what `once` returns, in microseconds. The first of its results is not reported.
template <class F>
void sample(const char* name, int samples, F once) {
  if (!is_wanted(name)) return;
  report_begin(name);
  once();
  std::vector<double> all;
  for (int k = 0; k < samples; ++k) all.push_back(once());
  report_samples(name, 0, all);
}

// ---- the figures ---------------------------------------------------------------------------------------------------

struct Effort {
  int waits;               // samples of a launch with its wait
  int launches;            // launches per sample, back to back
  int queues;              // samples of launches back to back
  int functions, modules;  // functions that a module has; modules that are loaded, one per sample
  int copies;              // samples of a copy
  int batches, batch;      // samples of an asynchronous call; calls per sample, which do not fill any queue
  std::uint32_t delay;     // rounds of the kernel behind which a stream waits; longer than a batch of calls
};

constexpr Effort full = {.waits = 1500,
                         .launches = 10'000,
                         .queues = 7,
                         .functions = 512,
                         .modules = 4,
                         .copies = 500,
                         .batches = 40,
                         .batch = 256,
                         .delay = 300'000};
constexpr Effort brief = {.waits = 40,
                          .launches = 400,
                          .queues = 2,
                          .functions = 64,
                          .modules = 2,
                          .copies = 20,
                          .batches = 3,
                          .batch = 64,
                          .delay = 2'000};

class SmallKernels {
 public:
  explicit SmallKernels(const Effort& effort)
      : effort_(effort), device_(open_device()), text_(ptx_of_empty_kernels(effort.functions)) {
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module, ptx_of_empty_kernels(several).c_str()));
    functions_ = functions_of(module, several);
    CHECK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&other_, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&event_, CU_EVENT_DEFAULT));
  }

  void waits() {
    const auto plan = [&](const char* name) { return Plan{.name = name, .samples = effort_.waits}; };
    time_each(plan("launch_stream_synchronize"), [&] { launch_one(), wait(); });
    time_each(plan("launch_context_synchronize"), [&] {
      launch_one();
      CHECK(cuCtxSynchronize());
    });
    time_each(plan("launch_event_synchronize"), [&] {
      launch_one();
      CHECK(cuEventRecord(event_, stream_));
      CHECK(cuEventSynchronize(event_));
    });
    time_each({.name = "20_launches_stream_synchronize", .samples = effort_.waits / 4}, [&] {
      for (int i = 0; i < 20; ++i) launch_one();
      wait();
    });
  }

  void queues() {
    const auto time_queue = [&](const char* name, const auto& launch_next) {
      time_each({.name = name, .samples = effort_.queues, .parts = effort_.launches}, [&] {
        for (int i = 0; i < effort_.launches; ++i) launch_next();
        wait();
      });
    };
    time_queue("back_to_back", [&] { launch_one(); });
    std::uint64_t n = 0;
    time_queue("back_to_back_8_functions", [&] {
      const std::uint64_t function = n++ % several;
      launch_numbered(functions_[function], kept_shape(function), stream_, n);
    });
    n = 0;
    time_queue("back_to_back_8_functions_new_shapes", [&] {
      const std::uint64_t function = n % several, shape = n / several;
      launch_numbered(functions_[function], new_shape(shape), stream_, ++n);
    });
  }

  // Times launches of functions that were never launched, each with its own shape. Each sample has a module of its own.
  void new_functions() {
    sample("back_to_back_new_functions", effort_.modules, [&] {
      CUmodule module = nullptr;
      CHECK(cuModuleLoadData(&module, text_.c_str()));
      const std::vector<CUfunction> functions = functions_of(module, effort_.functions);
      CHECK(cuCtxSynchronize());
      const auto start = Clock::now();
      for (std::uint64_t n = 0; n < functions.size(); ++n) launch_numbered(functions[n], new_shape(n), stream_, n);
      wait();
      const double took = microseconds_since(start) / effort_.functions;
      CHECK(cuModuleUnload(module));
      return took;
    });
  }

  // Each thread launches on its own stream and then waits for the stream. The time is that of all threads per kernel of
  // all threads.
  void threads(int count) {
    const int launches = effort_.launches / count;
    std::barrier together(count + 1);
    std::atomic<bool> ends = false;
    const auto work = [&] {
      CUstream stream = nullptr;
      CHECK(cuCtxSetCurrent(device_.context));
      CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
      for (together.arrive_and_wait(); !ends; together.arrive_and_wait()) {
        for (int i = 0; i < launches; ++i)
          launch_numbered(functions_[0], kept_shape(0), stream, static_cast<std::uint64_t>(i));
        CHECK(cuStreamSynchronize(stream));
        together.arrive_and_wait();
      }
      CHECK(cuStreamDestroy(stream));
    };
    std::vector<std::jthread> started;
    for (int i = 0; i < count; ++i) started.emplace_back(work);
    const std::string name = "back_to_back_" + std::to_string(count) + "_threads";
    sample(name.c_str(), effort_.queues, [&] {
      const auto start = Clock::now();
      together.arrive_and_wait();  // the launches begin
      together.arrive_and_wait();  // all streams are idle
      return microseconds_since(start) / launches / count;
    });
    ends = true;
    together.arrive_and_wait();
  }

  void copies() const {
    constexpr std::size_t most = 64 << 10;
    CUdeviceptr device = 0;
    void* pinned = nullptr;
    std::vector<char> pageable(most, 1);
    CHECK(cuMemAlloc(&device, most));
    CHECK(cuMemHostAlloc(&pinned, most, 0));
    std::memset(pinned, 1, most);
    const auto both_ways = [&](const std::string& name, void* host, std::size_t bytes) {
      time_each({.name = (name + "_h2d").c_str(), .samples = effort_.copies},
                [&] { CHECK(cuMemcpyHtoD(device, host, bytes)); });
      time_each({.name = (name + "_d2h").c_str(), .samples = effort_.copies},
                [&] { CHECK(cuMemcpyDtoH(host, device, bytes)); });
    };
    both_ways("pageable_4_bytes", pageable.data(), 4);
    both_ways("pageable_4KiB", pageable.data(), 4 << 10);
    both_ways("pinned_4KiB", pinned, 4 << 10);
    both_ways("pinned_64KiB", pinned, most);
    CHECK(cuMemFreeHost(pinned));
    CHECK(cuMemFree(device));
  }

  // Times calls in batches that fill no queue, with an untimed wait before each batch.
  void calls() {
    const auto plan = [&](const char* name) {
      return Plan{.name = name, .samples = effort_.batches, .repeat = effort_.batch, .burst = 1};
    };
    time_each(plan("call_launch"), [&] { launch_one(); });
    time_each(plan("call_event_record"), [&] { CHECK(cuEventRecord(event_, stream_)); });
    time_each(plan("call_stream_query"), [&] { CHECK(cuStreamQuery(stream_)); });
    stream_waits();
  }

  void launch_one() { launch_numbered(functions_[0], kept_shape(0), stream_, launched_++); }
  void wait() const { CHECK(cuStreamSynchronize(stream_)); }

 private:
  // cuStreamWaitEvent of events that are recorded behind a long kernel of another stream, so that no event has happened.
  void stream_waits() {
    const CUfunction delay = load_delay();
    CUdeviceptr rare = 0;
    CHECK(cuMemAlloc(&rare, sizeof(std::uint32_t)));
    std::vector<CUevent> events(static_cast<std::size_t>(effort_.batch));
    for (CUevent& event : events) CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    sample("call_stream_wait_event", effort_.batches, [&] {
      std::uint32_t rounds = effort_.delay;
      void* parameters[] = {&rounds, &rare};
      CHECK(cuCtxSynchronize());
      CHECK(cuLaunchKernel(delay, 1, 1, 1, 1, 1, 1, 0, other_, parameters, nullptr));
      for (const CUevent event : events) CHECK(cuEventRecord(event, other_));
      const auto start = Clock::now();
      for (const CUevent event : events) CHECK(cuStreamWaitEvent(stream_, event, 0));
      return microseconds_since(start) / effort_.batch;
    });
    CHECK(cuCtxSynchronize());
    for (const CUevent event : events) CHECK(cuEventDestroy(event));
    CHECK(cuMemFree(rare));
  }

  static CUfunction load_delay() {
    CUmodule module = nullptr;
    CUfunction delay = nullptr;
    CHECK(cuModuleLoadData(&module, delay_kernel));
    CHECK(cuModuleGetFunction(&delay, module, "delay"));
    return delay;
  }

  const Effort& effort_;
  const Device device_;
  const std::string text_;  // PTX of the functions that are launched once each
  std::vector<CUfunction> functions_;
  CUstream stream_ = nullptr, other_ = nullptr;
  CUevent event_ = nullptr;
  std::uint64_t launched_ = 0;
};

}  // namespace

void small_kernels(bool quick) {
  SmallKernels kernels(quick ? brief : full);
  report_ready();
  if (!must_go()) return;
  kernels.waits();
  kernels.queues();
  kernels.new_functions();
  for (const int count : {2, 4, 8}) kernels.threads(count);
  kernels.copies();
  kernels.calls();
}

void launches(int count) {
  SmallKernels kernels(brief);
  const auto time_all = [&](const char* name, bool wait_for_each) {
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) {
      kernels.launch_one();
      if (wait_for_each) kernels.wait();
    }
    kernels.wait();
    report_samples(name, 0, {microseconds_since(start) / count});
  };
  kernels.launch_one(), kernels.wait();
  report_ready();
  while (must_go()) {
    time_all("back_to_back", false);
    if (!must_go()) return;
    time_all("launch_synchronize", true);
  }
}

}  // namespace measure
