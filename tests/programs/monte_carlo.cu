// Monte Carlo with its own generator: a random number is a hash of its index, so threads need no state, and the CPU
// computes the same numbers. The program counts points in a circle as integers, which is exact. It values an option
// with normal numbers by the Box-Muller method, and compares their mean with the CPU's and with the closed formula.
#include <cmath>

#include "check.h"

namespace {

constexpr int block = 128;
constexpr int blocks = 8;

__host__ __device__ inline uint64_t random_bits(uint64_t place, uint64_t key) {
  uint64_t x = place * 0x9e3779b97f4a7c15ull + key;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Returns whether the point that these bits encode lies in the quarter circle with radius 2^31.
__host__ __device__ inline bool inside(uint64_t bits) {
  const uint64_t x = bits >> 33, y = (bits & 0xffffffffu) >> 1;
  return x * x + y * y < (uint64_t{1} << 62);
}

__global__ void count_inside(uint64_t key, int n, unsigned* count) {
  unsigned own = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    own += inside(random_bits(i, key));
  }
  for (int step = 16; step > 0; step /= 2) own += __shfl_xor_sync(0xffffffffu, own, step);
  if (threadIdx.x % 32 == 0) atomicAdd(count, own);
}

struct Sums {
  double value, square;
};

struct Terms {
  float price, strike, drift, spread;  // drift and spread for the whole time
};

__global__ void sum_payoffs(uint64_t key, int n, Terms terms, Sums* out) {
  __shared__ Sums part[block];
  Sums own = {0, 0};
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const uint64_t bits = random_bits(i, key);
    const float u = (static_cast<float>(bits >> 40) + 0.5f) * 0x1p-24f;
    const float v = static_cast<float>(bits & 0xffffff) * 0x1p-24f;
    float sine = 0, cosine = 0;
    sincospif(2 * v, &sine, &cosine);
    const float radius = sqrtf(-2 * logf(u));
    for (const float normal : {radius * sine, radius * cosine}) {
      const float payoff = fmaxf(terms.price * expf(terms.drift + terms.spread * normal) - terms.strike, 0);
      own.value += static_cast<double>(payoff);
      own.square += static_cast<double>(payoff) * static_cast<double>(payoff);
    }
  }
  part[threadIdx.x] = own;
  for (int half = block / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      part[threadIdx.x].value += part[threadIdx.x + half].value;
      part[threadIdx.x].square += part[threadIdx.x + half].square;
    }
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

void circle(int n) {
  constexpr uint64_t key = 12345;
  unsigned* device_count = check::device_buffer<unsigned>(1);
  CHECK_CUDA(cudaMemset(device_count, 0, sizeof(unsigned)));
  count_inside<<<blocks, block>>>(key, n, device_count);
  CHECK_CUDA(cudaGetLastError());
  unsigned expected = 0;
  for (int i = 0; i < n; ++i) expected += inside(random_bits(i, key));
  const unsigned count = check::host_copy(device_count, 1)[0];
  CHECK_THAT(count == expected, "%u points are in the circle, the CPU says %u.", count, expected);
  std::printf("monte_carlo: %u of %d points in the circle\n", count, n);
  CHECK_CUDA(cudaFree(device_count));
}

Sums payoffs_on_the_cpu(uint64_t key, int n, const Terms& terms) {
  Sums sums = {0, 0};
  for (int i = 0; i < n; ++i) {
    const uint64_t bits = random_bits(i, key);
    const double u = (static_cast<double>(bits >> 40) + 0.5) * 0x1p-24;
    const double angle = 2 * M_PI * static_cast<double>(bits & 0xffffff) * 0x1p-24;
    const double radius = std::sqrt(-2 * std::log(u));
    for (const double normal : {radius * std::sin(angle), radius * std::cos(angle)}) {
      const double end = double{terms.price} * std::exp(double{terms.drift} + double{terms.spread} * normal);
      const double payoff = std::fmax(end - double{terms.strike}, 0);
      sums.value += payoff;
      sums.square += payoff * payoff;
    }
  }
  return sums;
}

double normal(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }

void option(int n) {
  constexpr uint64_t key = 777;
  constexpr double rate = 0.05, volatility = 0.2, years = 1, price = 100, strike = 105;
  const double spread = volatility * std::sqrt(years);
  const Terms terms = {static_cast<float>(price), static_cast<float>(strike),
                       static_cast<float>((rate - volatility * volatility / 2) * years), static_cast<float>(spread)};
  Sums* out = check::device_buffer<Sums>(blocks);
  sum_payoffs<<<blocks, block>>>(key, n, terms, out);
  CHECK_CUDA(cudaGetLastError());
  Sums sums = {0, 0};
  for (const Sums& part : check::host_copy(out, blocks)) {
    sums.value += part.value;
    sums.square += part.square;
  }
  const double paths = 2.0 * n, mean = sums.value / paths;
  const Sums on_cpu = payoffs_on_the_cpu(key, n, terms);
  CHECK_THAT(std::fabs(mean - on_cpu.value / paths) < 1e-3, "The mean payoff is %g, the CPU says %g.", mean,
             on_cpu.value / paths);
  CHECK_THAT(std::fabs(sums.square - on_cpu.square) < 1e-4 * on_cpu.square, "The squares sum to %g, not %g.",
             sums.square, on_cpu.square);
  const double d1 = (std::log(price / strike) + (rate + volatility * volatility / 2) * years) / spread;
  const double expected = price * std::exp(rate * years) * normal(d1) - strike * normal(d1 - spread);
  const double error = std::sqrt((sums.square / paths - mean * mean) / paths);
  CHECK_THAT(std::fabs(mean - expected) < 4 * error, "The mean payoff is %g, the formula says %g.", mean, expected);
  std::printf("monte_carlo: option, %.0f paths: ok\n", paths);
  CHECK_CUDA(cudaFree(out));
}

}  // namespace

int main(int argc, char** argv) {
  long n = 20000;
  check::parse(argc, argv, "monte_carlo", "counts and averages random numbers",
               {{"--n", "points, and pairs of paths", &n, 100, 100000000}});
  circle(static_cast<int>(n));
  option(static_cast<int>(n));
  return 0;
}
