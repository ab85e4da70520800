// American options by a binomial tree, one block per option. The tree's levels shrink in shared memory, with two
// barriers per level. All operations are IEEE 754 operations in a fixed order, so CPU and GPU agree in every bit.
#include <algorithm>

#include "check.h"

namespace {

constexpr int block = 64;
constexpr int most_steps = 512;

struct Option {
  float price, strike;
  float up, down;                // factors of one step
  float weight_up, weight_down;  // discounted probabilities
};

__global__ void value_options(const Option* options, float* values, int steps) {
  __shared__ float level[most_steps + 1];
  __shared__ float price[most_steps + 1];
  const Option o = options[blockIdx.x];
  if (threadIdx.x == 0) {  // the lowest leaf first; each further leaf is higher by the factors of two steps
    float leaf = o.price;
    for (int i = 0; i < steps; ++i) leaf = __fmul_rn(leaf, o.down);
    const float two_up = __fdiv_rn(o.up, o.down);
    for (int i = 0; i <= steps; ++i) {
      price[i] = leaf;
      leaf = __fmul_rn(leaf, two_up);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i <= steps; i += block) level[i] = fmaxf(__fsub_rn(o.strike, price[i]), 0.0f);
  for (int left = steps; left > 0; --left) {
    // Processes `block` nodes at a time. A node reads itself and its upper neighbour, which may belong to the next
    // group of nodes.
    for (int first = 0; first < left; first += block) {
      const int i = first + threadIdx.x;
      __syncthreads();
      float kept = 0, now = 0;
      if (i < left) {
        kept = __fadd_rn(__fmul_rn(o.weight_up, level[i + 1]), __fmul_rn(o.weight_down, level[i]));
        now = __fmul_rn(price[i], o.up);  // one step further down
      }
      __syncthreads();
      if (i < left) {
        price[i] = now;
        level[i] = fmaxf(kept, __fsub_rn(o.strike, now));
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) values[blockIdx.x] = level[0];
}

// volatile prevents the host's compiler from fusing operations and from using wider registers.
float product(float a, float b) {
  volatile float result = a * b;
  return result;
}

float value_on_the_cpu(const Option& o, int steps) {
  std::vector<float> price(steps + 1), level(steps + 1);
  float leaf = o.price;
  for (int i = 0; i < steps; ++i) leaf = product(leaf, o.down);
  const float two_up = o.up / o.down;
  for (int i = 0; i <= steps; ++i) {
    price[i] = leaf;
    leaf = product(leaf, two_up);
    level[i] = std::max(o.strike - price[i], 0.0f);
  }
  for (int left = steps; left > 0; --left) {
    for (int i = 0; i < left; ++i) {
      price[i] = product(price[i], o.up);
      const float kept = product(o.weight_up, level[i + 1]) + product(o.weight_down, level[i]);
      level[i] = std::max(kept, o.strike - price[i]);
    }
  }
  return level[0];
}

}  // namespace

int main(int argc, char** argv) {
  long n = 12, steps = 100;
  check::parse(argc, argv, "binomial_options", "values American options by a tree",
               {{"--n", "number of options", &n, 1, 65535}, {"--steps", "steps of the tree", &steps, 1, most_steps}});
  std::vector<Option> options(n);
  std::vector<float> expected(n);
  for (size_t i = 0; i < options.size(); ++i) {
    const float step = 0.0078125f * static_cast<float>(1 + check::small_number(i, 1) / 4);
    Option& o = options[i];
    o = {50.0f + static_cast<float>(check::small_number(i, 2)),
         45.0f + static_cast<float>(check::small_number(i, 3)),
         1.0f + step,
         1.0f / (1.0f + step),
         0.4995f,
         0.5f};
    expected[i] = value_on_the_cpu(o, static_cast<int>(steps));
  }
  Option* device_options = check::device_copy(options);
  float* device_values = check::device_buffer<float>(options.size());
  value_options<<<static_cast<unsigned>(n), block>>>(device_options, device_values, static_cast<int>(steps));
  CHECK_CUDA(cudaGetLastError());
  const std::vector<float> values = check::host_copy(device_values, options.size());
  check::compare("options", values, expected);
  std::printf("binomial_options: %ld options, %ld steps, checksum %016llx\n", n, steps,
              static_cast<unsigned long long>(check::checksum(values)));
  CHECK_CUDA(cudaFree(device_options));
  CHECK_CUDA(cudaFree(device_values));
  return 0;
}
