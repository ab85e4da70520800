// Measures the simulated GPU's thread-instructions per second, by kind of instruction, and the cost of a launch.
// Instructions are counted in each loop's text. This is not a test: its results are in
// docs/measurements/simulated-gpu.md, with the machine.
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>

#include "host/simgpu/engine.h"
#include "host/simgpu/vm/load.h"

namespace {

using simgpu::Address;

// A kernel that loops `rounds` times over eight copies of `body`, like an unrolled loop.
std::string loop_of(const std::string& body) {
  std::string text = R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry loop(.param .u64 memory, .param .u32 rounds)
{
  .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .f32 %f<16>; .reg .f64 %fd<16>; .reg .pred %p<8>;
  .shared .align 16 .b8 tile[4096];
  ld.param.u64 %rd1, [memory];
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mad.lo.s32 %r5, %r3, %r4, %r2;
  mul.wide.u32 %rd2, %r5, 8;
  add.s64 %rd3, %rd1, %rd2;
  shl.b32 %r6, %r2, 2;
  mov.u32 %r7, tile;
  add.u32 %r8, %r7, %r6;
  and.b32 %r9, %r8, 127;
  mov.u32 %r10, 12345;
  mov.u32 %r11, 0;
  cvt.rn.f32.u32 %f1, %r5;
  mov.f32 %f2, 0f3f7fffff;
  mov.f32 %f3, 0f3a83126f;
  cvt.f64.f32 %fd1, %f1;
  mov.f64 %fd2, 0d3fefffffffffffff;
  mov.f64 %fd3, 0d3f50624dd2f1a9fc;
  mov.u64 %rd4, 1;
LOOP:
)";
  for (int k = 0; k < 8; ++k) text += body;
  return text + R"(
  add.u32 %r11, %r11, 1;
  setp.lt.u32 %p1, %r11, %r1;
  @%p1 bra LOOP;
  add.u32 %r10, %r10, %r5;
  st.global.u32 [%rd3], %r10;
  st.global.f32 [%rd3+4], %f1;
  st.global.f64 [%rd3], %fd1;
  st.global.u64 [%rd3], %rd4;
  ret;
}
)";
}

struct Kernel {
  explicit Kernel(const std::string& text, unsigned workers = 1) : engine(space, workers, [](std::string_view) {}) {
    auto loaded = simgpu::load_ptx(std::span(&text, 1), space);
    log = loaded.log;
    module = std::move(loaded.module);
    memory = space.allocate(std::size_t{16} << 20);
  }

  bool run(unsigned blocks, unsigned threads, unsigned rounds) {
    std::byte params[16];
    std::memcpy(params, &memory, 8);
    std::memcpy(params + 8, &rounds, 4);
    const simgpu::Function* function = module->function("loop");
    return !engine.run({function, {blocks}, {threads}, 0, std::span(params, function->param_bytes), false});
  }

  simgpu::AddressSpace space{std::size_t{64} << 20};
  simgpu::Engine engine;
  std::unique_ptr<simgpu::Module> module;
  std::string log;
  Address memory = 0;
};

void instructions(benchmark::State& state, const std::string& body, unsigned per_body, unsigned workers) {
  Kernel kernel(loop_of(body), workers);
  if (!kernel.module) return state.SkipWithError(kernel.log.c_str());
  const unsigned blocks = 64;
  const unsigned threads = 256;
  const unsigned rounds = 500;
  for (auto _ : state) {
    if (!kernel.run(blocks, threads, rounds)) return state.SkipWithError("fault");
  }
  const double each = double{blocks} * threads * rounds * (8 * per_body + 3);
  state.counters["thread_instructions"] =
      benchmark::Counter(each * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

const char* const integer = R"(
  mad.lo.s32 %r10, %r10, %r2, %r5;
  xor.b32 %r12, %r10, %r6;
  shr.u32 %r13, %r12, 7;
  add.s32 %r10, %r13, %r10;
)";
const char* const single = R"(
  fma.rn.f32 %f1, %f1, %f2, %f3;
  mul.f32 %f4, %f1, %f2;
  add.f32 %f1, %f4, %f3;
  fma.rn.f32 %f1, %f1, %f2, %f3;
)";
const char* const twice = R"(
  fma.rn.f64 %fd1, %fd1, %fd2, %fd3;
  mul.f64 %fd4, %fd1, %fd2;
  add.f64 %fd1, %fd4, %fd3;
  fma.rn.f64 %fd1, %fd1, %fd2, %fd3;
)";
const char* const wide = R"(
  mul.wide.u32 %rd5, %r5, 4;
  add.s64 %rd6, %rd5, %rd4;
  add.s64 %rd4, %rd6, 12;
  shl.b64 %rd4, %rd4, 1;
)";
const char* const choice = R"(
  setp.lt.s32 %p2, %r10, %r2;
  selp.b32 %r12, %r10, %r5, %p2;
  setp.gt.f32 %p3, %f1, %f2;
  selp.f32 %f1, %f2, %f1, %p3;
)";
const char* const row = R"(
  ld.global.f32 %f4, [%rd3];
  st.global.f32 [%rd3+4], %f4;
)";
const char* const tile = R"(
  st.shared.f32 [%r8], %f1;
  ld.shared.f32 %f4, [%r7+16];
  ld.shared.f32 %f5, [%r8];
  ld.shared.f32 %f6, [%r9];
)";
const char* const divided = R"(
  div.u32 %r12, %r5, %r4;
  rem.u32 %r13, %r5, %r4;
)";
const char* const approximate = R"(
  ex2.approx.f32 %f4, %f2;
  lg2.approx.f32 %f5, %f2;
  sin.approx.f32 %f6, %f2;
  rsqrt.approx.f32 %f7, %f2;
)";

// Measures per second of CPU time, so that a busy machine gives the same result.
#define PER_CORE(name, body, count) \
  BENCHMARK_CAPTURE(instructions, name, body, count, 1)->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond)
PER_CORE(integer, integer, 4);
PER_CORE(single, single, 4);
PER_CORE(double_precision, twice, 4);
PER_CORE(wide_integer, wide, 4);
PER_CORE(compare_select, choice, 4);
PER_CORE(global_rows, row, 2);
PER_CORE(shared_memory, tile, 4);
PER_CORE(division, divided, 2);
PER_CORE(approximations, approximate, 4);
#undef PER_CORE

// Measures wall-clock time, with the number of blocks as argument.
void scaling(benchmark::State& state) { instructions(state, integer, 4, static_cast<unsigned>(state.range(0))); }
BENCHMARK(scaling)->RangeMultiplier(2)->Range(1, 8)->UseRealTime()->Unit(benchmark::kMillisecond);

void launch(benchmark::State& state) {
  Kernel kernel(loop_of(""), 2);
  for (auto _ : state) {
    if (!kernel.run(static_cast<unsigned>(state.range(0)), 128, 1)) return state.SkipWithError("fault");
  }
}
BENCHMARK(launch)->Arg(1)->Arg(64)->Arg(4096)->UseRealTime()->Unit(benchmark::kMicrosecond);

void load_module(benchmark::State& state) {
  simgpu::AddressSpace space{std::size_t{64} << 20};
  const std::string text = loop_of(integer) + "";
  for (auto _ : state) benchmark::DoNotOptimize(simgpu::load_ptx(std::span(&text, 1), space));
}
BENCHMARK(load_module)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
