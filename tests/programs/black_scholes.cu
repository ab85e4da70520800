// European options by the Black-Scholes formula, in float: with the device's exp, log, sqrt and erfc, and with the
// polynomial that replaces erfc where it is missing. The results are approximations, so the program compares them with
// the CPU's doubles within a bound. It also checks put-call parity.
#include <algorithm>
#include <cmath>

#include "check.h"

namespace {

constexpr int block = 128;
constexpr float rate = 0.02f;
constexpr float volatility = 0.30f;

struct Option {
  float price, strike, years;
};

struct Value {
  float call, put;
};

__device__ float normal_by_erfc(float x) { return 0.5f * erfcf(-x * 0.70710678f); }

// The polynomial is formula 26.2.17 of Abramowitz and Stegun.
__device__ float normal_by_polynomial(float x) {
  const float k = __fdividef(1.0f, 1.0f + 0.2316419f * fabsf(x));
  const float sum =
      k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
  const float tail = 0.39894228f * __expf(-0.5f * x * x) * sum;
  return x > 0 ? 1.0f - tail : tail;
}

template <bool by_polynomial>
__global__ void value_options(const Option* options, Value* values, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const Option o = options[i];
    const float root = sqrtf(o.years);
    const float d1 =
        (logf(o.price / o.strike) + (rate + 0.5f * volatility * volatility) * o.years) / (volatility * root);
    const float d2 = d1 - volatility * root;
    const float n1 = by_polynomial ? normal_by_polynomial(d1) : normal_by_erfc(d1);
    const float n2 = by_polynomial ? normal_by_polynomial(d2) : normal_by_erfc(d2);
    const float discounted = o.strike * expf(-rate * o.years);
    values[i] = {o.price * n1 - discounted * n2, discounted * (1.0f - n2) - o.price * (1.0f - n1)};
  }
}

double normal(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }

void compare(const char* way, const std::vector<Option>& options, const Value* device_values) {
  CHECK_CUDA(cudaGetLastError());
  const std::vector<Value> values = check::host_copy(device_values, options.size());
  for (size_t i = 0; i < options.size(); ++i) {
    const double price = options[i].price, strike = options[i].strike, years = options[i].years;
    const double spread = double{volatility} * std::sqrt(years);
    const double d1 = (std::log(price / strike) + double{rate} * years) / spread + spread / 2;
    const double discounted = strike * std::exp(-double{rate} * years);
    const double call = price * normal(d1) - discounted * normal(d1 - spread);
    const double bound = 2e-4 * std::max(1.0, price + strike);
    CHECK_THAT(std::fabs(values[i].call - call) < bound, "%s: call %zu is worth %g, the CPU says %g.", way, i,
               double{values[i].call}, call);
    const double parity = double{values[i].call} - double{values[i].put} - price + discounted;
    CHECK_THAT(std::fabs(parity) < bound, "%s: call and put %zu differ from parity by %g.", way, i, parity);
  }
  std::printf("black_scholes: %s, %zu options: ok\n", way, options.size());
}

}  // namespace

int main(int argc, char** argv) {
  long n = 3000;
  check::parse(argc, argv, "black_scholes", "values European options", {{"--n", "number of options", &n, 1, 10000000}});
  std::vector<Option> options(n);
  for (size_t i = 0; i < options.size(); ++i) {
    options[i].price = 5.0f + static_cast<float>(check::small_number(i, 1)) * 1.6f;
    options[i].strike = 1.0f + static_cast<float>(check::small_number(i, 2)) * 6.0f;
    options[i].years = 0.25f + static_cast<float>(check::small_number(i, 3)) * 0.6f;
  }
  Option* device_options = check::device_copy(options);
  Value* values = check::device_buffer<Value>(options.size());
  value_options<false><<<8, block>>>(device_options, values, static_cast<int>(n));
  compare("by erfc", options, values);
  value_options<true><<<8, block>>>(device_options, values, static_cast<int>(n));
  compare("by a polynomial", options, values);
  CHECK_CUDA(cudaFree(device_options));
  CHECK_CUDA(cudaFree(values));
  return 0;
}
