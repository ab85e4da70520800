// cuRAND: the generators of its host interface on the device and on the host, their distributions, and generators
// inside a kernel.
#include <curand.h>
#include <curand_kernel.h>

#include <string>

#include "tests/conformance/library.h"

namespace {

constexpr size_t count = 1 << 16;

struct Kind {
  const char* name;
  curandRngType_t type;
};

void check_mean(const std::string& what, const std::vector<float>& values, double expected, double within) {
  double sum = 0;
  for (float value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  CHECK_THAT(std::fabs(mean - expected) < within, "%s: the mean is %g.", what.c_str(), mean);
}

void fill(const Kind& kind, bool quasi) {
  const std::string name = kind.name;
  curandGenerator_t generator = nullptr;
  float* data = check::device_buffer<float>(count);
  CHECK_LIBRARY(curandCreateGenerator(&generator, kind.type));
  if (quasi)
    CHECK_LIBRARY(curandSetQuasiRandomGeneratorDimensions(generator, 4));
  else
    CHECK_LIBRARY(curandSetPseudoRandomGeneratorSeed(generator, 1234));
  CHECK_LIBRARY(curandGenerateUniform(generator, data, count));
  auto values = check::host_copy(data, count);
  check_mean(name, values, 0.5, 0.01);
  library::exact((name + ", uniform").c_str(), values);
  CHECK_LIBRARY(curandGenerateNormal(generator, data, count, 1, 2));
  values = check::host_copy(data, count);
  check_mean(name, values, 1, 0.05);
  library::exact((name + ", normal").c_str(), values);
  CHECK_LIBRARY(curandDestroyGenerator(generator));
  CHECK_CUDA(cudaFree(data));
}

void more_distributions() {
  curandGenerator_t generator = nullptr;
  CHECK_LIBRARY(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10));
  CHECK_LIBRARY(curandSetPseudoRandomGeneratorSeed(generator, 99));
  CHECK_LIBRARY(curandSetGeneratorOffset(generator, 77));
  unsigned* whole = check::device_buffer<unsigned>(count);
  double* wide = check::device_buffer<double>(count);
  CHECK_LIBRARY(curandGenerate(generator, whole, count));
  library::exact("words", check::host_copy(whole, count));
  CHECK_LIBRARY(curandGeneratePoisson(generator, whole, count, 12.5));
  library::exact("poisson", check::host_copy(whole, count));
  CHECK_LIBRARY(curandGenerateLogNormalDouble(generator, wide, count, 0, 1));
  library::exact("log-normal", check::host_copy(wide, count));
  CHECK_LIBRARY(curandDestroyGenerator(generator));
}

// A generator that needs no GPU, in a program that uses a GPU.
void on_host() {
  curandGenerator_t generator = nullptr;
  std::vector<float> values(count);
  CHECK_LIBRARY(curandCreateGeneratorHost(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10));
  CHECK_LIBRARY(curandSetPseudoRandomGeneratorSeed(generator, 5));
  CHECK_LIBRARY(curandGenerateUniform(generator, values.data(), count));
  check_mean("on the host", values, 0.5, 0.01);
  library::exact("on the host", values);
  CHECK_LIBRARY(curandDestroyGenerator(generator));
}

template <class State>
__global__ void draw(float* uniform, float* normal) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  State state;
  curand_init(42, thread, 0, &state);
  for (int i = 0; i < 4; ++i) {
    uniform[thread * 4 + i] = curand_uniform(&state);
    normal[thread * 4 + i] = curand_normal(&state);
  }
}

template <class State>
void in_kernel(const char* name) {
  constexpr size_t threads = 64 * 64;
  float *uniform = check::device_buffer<float>(threads * 4), *normal = check::device_buffer<float>(threads * 4);
  draw<State><<<64, 64>>>(uniform, normal);
  CHECK_CUDA(cudaDeviceSynchronize());
  const auto values = check::host_copy(uniform, threads * 4);
  check_mean(name, values, 0.5, 0.02);
  library::exact(name, values);
  library::exact((std::string(name) + ", normal").c_str(), check::host_copy(normal, threads * 4));
}

}  // namespace

int main() {
  for (const Kind& kind : {Kind{"XORWOW", CURAND_RNG_PSEUDO_XORWOW}, Kind{"MRG32k3a", CURAND_RNG_PSEUDO_MRG32K3A},
                           Kind{"MTGP32", CURAND_RNG_PSEUDO_MTGP32}, Kind{"MT19937", CURAND_RNG_PSEUDO_MT19937},
                           Kind{"Philox", CURAND_RNG_PSEUDO_PHILOX4_32_10}})
    fill(kind, false);
  for (const Kind& kind :
       {Kind{"Sobol", CURAND_RNG_QUASI_SOBOL32}, Kind{"scrambled Sobol", CURAND_RNG_QUASI_SCRAMBLED_SOBOL32}})
    fill(kind, true);
  more_distributions();
  on_host();
  in_kernel<curandStateXORWOW_t>("in a kernel, XORWOW");
  in_kernel<curandStatePhilox4_32_10_t>("in a kernel, Philox");
  in_kernel<curandStateMRG32k3a_t>("in a kernel, MRG32k3a");
}
