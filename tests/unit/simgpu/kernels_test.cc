// Runs kernels that nvcc compiled for three architectures (in both PTX spellings that nvcc emits), and compares their
// results with the processor's. The build compiles them from kernels/simgpu_basic.cu.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>
#include <thread>

#include "tests/unit/simgpu/fixture.h"

namespace simgpu {
namespace {

std::string ptx_for(const std::string& architecture) {
  std::ifstream file(std::string(IVGPU_TEST_KERNELS) + "/simgpu_basic_" + architecture + ".ptx");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class Kernels : public Device, public ::testing::WithParamInterface<const char*> {
 protected:
  std::unique_ptr<Module> module_ = load(ptx_for(GetParam()));
  const Module& module() { return *module_; }

  // Returns deterministic values that differ from each other.
  static std::vector<float> floats(std::size_t count) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>((i * 7919) % 1009) / 64.0F;
    return values;
  }
  static std::vector<int> ints(std::size_t count, int below) {
    std::vector<int> values(count);
    for (std::size_t i = 0; i < count; ++i)
      values[i] = static_cast<int>((i * 7919 + 13) % static_cast<std::size_t>(below));
    return values;
  }
};

TEST_P(Kernels, VectorAddWithConstants) {
  const std::size_t n = 10'007;
  const std::vector<float> a = floats(n);
  const std::vector<float> b = floats(n + 1);
  float* const out = room<float>(n);
  const Global* weights = module().global("weights");
  ASSERT_NE(weights, nullptr);
  EXPECT_EQ(weights->size, 64u);
  EXPECT_TRUE(weights->constant);
  for (int k = 0; k < 16; ++k) reinterpret_cast<float*>(weights->address)[k] = static_cast<float>(k) * 0.25F;
  const Fault fault = run(module(), "vector_add", {(n + 255) / 256}, {256}, 0, upload(a), upload(b), out, int{n});
  ASSERT_FALSE(fault) << fault.what;
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_EQ(out[i], std::fma(b[i], static_cast<float>(i & 15) * 0.25F, a[i])) << i;
  }
}

TEST_P(Kernels, TiledMatrixProduct) {
  const int width = 64;
  const std::vector<float> a = floats(width * width);
  const std::vector<float> b = floats(width * width);
  float* const out = room<float>(width * width);
  const Fault fault = run(module(), "matrix_mul", {4, 4}, {16, 16}, 0, out, upload(a), upload(b), width, width);
  ASSERT_FALSE(fault) << fault.what;
  for (int row = 0; row < width; ++row) {
    for (int column = 0; column < width; ++column) {
      float sum = 0;
      for (int k = 0; k < width; ++k) sum = std::fma(a[row * width + k], b[k * width + column], sum);
      ASSERT_EQ(out[row * width + column], sum) << row << "," << column;
    }
  }
}

TEST_P(Kernels, ReductionWithShuffles) {
  const std::vector<int> in = ints(100'000, 1000);
  auto* const out = room<unsigned long long>(1);
  const Fault fault = run(module(), "reduce_sum", {13}, {256}, 1024, upload(in), 100'000, out);
  ASSERT_FALSE(fault) << fault.what;
  EXPECT_EQ(*out, std::accumulate(in.begin(), in.end(), 0ULL));
}

TEST_P(Kernels, TilesReduceSideBySide) {
  const std::vector<int> in = ints(96, 1000);
  int* const out = room<int>(96);
  ASSERT_FALSE(run(module(), "tile_sum", {1}, {96}, 0, upload(in), out));
  for (std::size_t i = 0; i < 96; ++i) EXPECT_EQ(out[i], std::accumulate(&in[i / 8 * 8], &in[i / 8 * 8] + 8, 0)) << i;
}

int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

TEST_P(Kernels, CallsRecursionAndStructures) {
  struct Large {
    int values[40];
    double scale;
  } large{};
  for (int k = 0; k < 40; ++k) large.values[k] = 100 * k;
  large.scale = 2.5;
  int* const out = room<int>(64);
  auto* const scale = room<double>(1);
  const Fault fault = run(module(), "calls", {1}, {64}, 0, large, out, scale);
  ASSERT_FALSE(fault) << fault.what;
  EXPECT_EQ(*scale, 5.0);
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(out[i], fibonacci(i % 12) + 101 * (i % 40) + 100 * ((i + 1) % 40)) << i;
  }
}

TEST_P(Kernels, CallsThroughPointersDivergeAndMeet) {
  const std::vector<int> in = ints(64, 50);
  int* const out = upload(in);
  const Fault fault = run(module(), "indirect", {1}, {64}, 0, out);
  ASSERT_FALSE(fault) << fault.what;
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(out[i], i % 3 == 0 ? in[i] + 1 : i % 3 == 1 ? in[i] * 2 : -in[i]) << i;
  }
}

double ulps(float got, double wanted) {
  const double unit = std::ldexp(1.0, std::max(-126, std::ilogb(wanted == 0 ? 1e-38 : wanted)) - 23);
  return std::abs(static_cast<double>(got) - wanted) / unit;
}

TEST_P(Kernels, MathematicalFunctions) {
  const int n = 1009;
  const std::vector<float> in = floats(n);
  float* const out = room<float>(n * 8);
  double* const wide = room<double>(n * 4);
  const Fault fault = run(module(), "maths", {8}, {128}, 0, upload(in), out, wide, n);
  ASSERT_FALSE(fault) << fault.what;
  for (int i = 0; i < n; ++i) {
    const double x = static_cast<double>(in[i]);
    EXPECT_LE(ulps(out[i * 8 + 0], std::sin(x)), 2.0) << x;
    EXPECT_LE(ulps(out[i * 8 + 1], std::cos(static_cast<double>(in[i] * 1000.0F))), 2.0) << x;
    EXPECT_LE(ulps(out[i * 8 + 2], std::exp(x)), 2.0) << x;
    EXPECT_LE(ulps(out[i * 8 + 3], std::log(static_cast<double>(in[i] + 1.0F))), 2.0) << x;
    EXPECT_LE(ulps(out[i * 8 + 4], std::pow(x, 1.5)), 4.0) << x;
    EXPECT_EQ(out[i * 8 + 5], std::sqrt(in[i])) << x;
    EXPECT_EQ(out[i * 8 + 6], in[i] / (in[i] + 3.0F)) << x;
    EXPECT_LE(ulps(out[i * 8 + 7], 1.0 / std::sqrt(static_cast<double>(in[i] + 0.5F))), 2.0) << x;
    EXPECT_NEAR(wide[i * 4 + 0], std::sin(x), 1e-15) << x;
    EXPECT_NEAR(wide[i * 4 + 1] / std::exp(x), 1.0, 3e-16) << x;
    EXPECT_EQ(wide[i * 4 + 2], 1.0 / (x + 7.0)) << x;
    EXPECT_NEAR(wide[i * 4 + 3], std::pow(x, 0.3), 1e-15 * std::pow(x, 0.3) + 1e-300) << x;
  }
}

TEST_P(Kernels, PrintsInTheOrderOfLanes) {
  ASSERT_FALSE(run(module(), "print_words", {1}, {32}, 0, 3));
  EXPECT_EQ(printed, "0 even  0.00|\n1 odd  0.50|\n2 even  1.00|\n");
}

TEST_P(Kernels, FailedAssertionIsAFault) {
  std::vector<int> in(32, 5);
  EXPECT_FALSE(run(module(), "check_positive", {1}, {32}, 0, upload(in)));
  in[7] = 0;
  const Fault fault = run(module(), "check_positive", {1}, {32}, 0, upload(in));
  EXPECT_EQ(fault.code, CUDA_ERROR_ASSERT);
  EXPECT_NE(printed.find("thread: [7,0,0] Assertion `in[threadIdx.x] > 0` failed."), std::string::npos) << printed;
}

TEST_P(Kernels, MallocAndFree) {
  int* const out = room<int>(256);
  for (int round = 0; round < 3; ++round) {
    const Fault fault = run(module(), "heap", {1}, {256}, 0, out);
    ASSERT_FALSE(fault) << fault.what;
    for (int i = 0; i < 256; ++i) ASSERT_EQ(out[i], 8 * i + 28);
  }
}

TEST_P(Kernels, LanesOfAWarpShareALock) {
  int* const state = room<int>(2);
  const Fault fault = run(module(), "spin_lock", {3}, {64}, 0, state, state + 1, 5);
  ASSERT_FALSE(fault) << fault.what;
  EXPECT_EQ(state[0], 0);
  EXPECT_EQ(state[1], 3 * 64 * 5);
}

TEST_P(Kernels, LaneWaitsForALaterLane) {
  int* const state = room<int>(2);
  ASSERT_FALSE(run(module(), "lane_waits", {1}, {32}, 0, state, state + 1));
  EXPECT_EQ(state[1], 42);
}

TEST_P(Kernels, CooperativeGridMeets) {
  const unsigned blocks = 24;
  int* const values = room<int>(blocks * 64);
  int* const out = room<int>(blocks * 64);
  const Fault fault = run_as(module(), "grid_barrier", {blocks}, {64}, 0, true, values, out);
  ASSERT_FALSE(fault) << fault.what;
  for (unsigned i = 0; i < blocks * 64; ++i) ASSERT_EQ(out[i], static_cast<int>(blocks * 64 - 1 - i));
}

TEST_P(Kernels, DivergentLoopsEndEachAtTheirOwnTime) {
  const unsigned n = 1000;
  std::vector<unsigned> in(n);
  std::iota(in.begin(), in.end(), 1U);
  unsigned* const steps = room<unsigned>(n);
  ASSERT_FALSE(run(module(), "collatz", {8}, {128}, 0, upload(in), steps, int{n}));
  for (unsigned i = 0; i < n; ++i) {
    unsigned count = 0;
    for (unsigned value = in[i]; value != 1; ++count) value = (value & 1) != 0 ? 3 * value + 1 : value / 2;
    ASSERT_EQ(steps[i], count) << in[i];
  }
}

TEST_P(Kernels, Histogram) {
  std::vector<unsigned char> in(50'000);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>((i * i) >> 3);
  unsigned* const bins = room<unsigned>(256);
  const Fault fault = run(module(), "histogram", {7}, {192}, 0, upload(in), 50'000, bins);
  ASSERT_FALSE(fault) << fault.what;
  for (unsigned k = 0; k < 256; ++k) ASSERT_EQ(bins[k], std::count(in.begin(), in.end(), k)) << k;
}

TEST_P(Kernels, VotesMatchesAndCounts) {
  const std::vector<int> in = ints(32, 25);
  unsigned* const out = room<unsigned>(128);
  ASSERT_FALSE(run(module(), "votes", {1}, {32}, 0, upload(in), out));
  unsigned ballot = 0;
  for (unsigned i = 0; i < 32; ++i) ballot |= static_cast<unsigned>(in[i] > 10) << i;
  const auto odd = static_cast<unsigned>(std::count_if(in.begin(), in.end(), [](int v) { return (v & 1) != 0; }));
  const bool any = std::any_of(in.begin(), in.end(), [](int v) { return v > 20; });
  for (unsigned i = 0; i < 32; ++i) {
    unsigned same = 0;
    for (unsigned j = 0; j < 32; ++j) same |= static_cast<unsigned>(in[i] == in[j]) << j;
    EXPECT_EQ(out[i * 4], ballot);
    EXPECT_EQ(out[i * 4 + 1], same);
    EXPECT_EQ(out[i * 4 + 2], 2U + any);
    EXPECT_EQ(out[i * 4 + 3], odd);
  }
}

TEST_P(Kernels, SeveralStreamsAtOnce) {
  const std::vector<int> in = ints(200'000, 1000);
  const int* const data = upload(in);
  const unsigned long long wanted = std::accumulate(in.begin(), in.end(), 0ULL);
  auto* const out = room<unsigned long long>(4);
  std::vector<std::thread> streams;
  std::vector<Fault> faults(4);
  for (std::size_t s = 0; s < 4; ++s) {
    streams.emplace_back([&, s] {
      for (int k = 0; k < 5 && !faults[s]; ++k) {
        faults[s] = run(module(), "reduce_sum", {16}, {128}, 512, data, 200'000, out + s);
      }
    });
  }
  for (std::thread& stream : streams) stream.join();
  for (std::size_t s = 0; s < 4; ++s) {
    EXPECT_FALSE(faults[s]) << faults[s].what;
    EXPECT_EQ(out[s], 5 * wanted);
  }
}

INSTANTIATE_TEST_SUITE_P(Nvcc, Kernels, ::testing::Values("75", "90", "120"),
                         [](const auto& info) { return std::string("compute_") + info.param; });

}  // namespace
}  // namespace simgpu
