// cuFFT with callbacks: a load callback that scales and a store callback that changes the sign, both compiled by NVRTC
// for linking at run time. cuFFT links them into its kernels with nvJitLink. (The older callbacks need the static
// library, which Python packages lack.)
#include <cufftXt.h>

#include "tests/conformance/compile.h"

namespace {

constexpr int n = 512, count = 4;
constexpr char source[] = R"(
extern "C" __device__ float2 load_scaled(void* in, unsigned long long place, void* info, void*) {
  const float2 value = static_cast<float2*>(in)[place];
  const float scale = *static_cast<float*>(info);
  return make_float2(value.x * scale, value.y * scale);
}
extern "C" __device__ void store_turned(void* out, unsigned long long place, float2 value, void*, void*) {
  static_cast<float2*>(out)[place] = make_float2(-value.x, -value.y);
}
)";

std::vector<char> link_code() {
  nvrtcProgram program =
      compile::source(source, "compute_" + compile::architecture(), {"-dlto", "--relocatable-device-code=true"});
  auto code = compile::link_code(program);
  CHECK_LIBRARY(nvrtcDestroyProgram(&program));
  return code;
}

std::vector<float> transform(const std::vector<float>& in, bool callbacks) {
  auto* data = reinterpret_cast<cufftComplex*>(check::device_copy(in));
  cufftHandle plan = 0;
  size_t size = 0;
  CHECK_LIBRARY(cufftCreate(&plan));
  if (callbacks) {
    const auto code = link_code();
    void* info = check::device_copy(std::vector<float>{0.5f});
    CHECK_LIBRARY(cufftXtSetJITCallback(plan, "load_scaled", code.data(), code.size(), CUFFT_CB_LD_COMPLEX, &info));
    CHECK_LIBRARY(cufftXtSetJITCallback(plan, "store_turned", code.data(), code.size(), CUFFT_CB_ST_COMPLEX, nullptr));
  }
  CHECK_LIBRARY(cufftMakePlan1d(plan, n, CUFFT_C2C, count, &size));
  CHECK_LIBRARY(cufftExecC2C(plan, data, data, CUFFT_FORWARD));
  auto out = check::host_copy(reinterpret_cast<float*>(data), in.size());
  CHECK_LIBRARY(cufftDestroy(plan));
  return out;
}

}  // namespace

int main() {
  const auto in = library::numbers<float>(2 * n * count, 1);
  auto plain = transform(in, false);
  const auto with = transform(in, true);
  for (float& value : plain) value *= -0.5f;
  library::check_near("callbacks", with, plain, 1e-6);
  library::exact("callbacks", with);
}
