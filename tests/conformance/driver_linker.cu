// The driver's own linker (cuLink): two parts in PTX that NVRTC made, with options and a log, become one module.
#include <cuda.h>

#include "tests/conformance/compile.h"

namespace {

constexpr char callee[] = "__device__ float mix(float x, float y) { return x * 0.75f + y * 0.25f; }";
constexpr char caller[] = R"(
extern __device__ float mix(float x, float y);
extern "C" __global__ void mix_all(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = mix(x[i], y[i]);
}
)";
constexpr size_t count = 4096;

}  // namespace

int main() {
  CHECK_CUDA(cudaFree(nullptr));
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_OPTIMIZATION_LEVEL};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log), reinterpret_cast<void*>(4)};
  CUlinkState link = nullptr;
  CHECK_DRIVER(cuLinkCreate(3, options, values, &link));
  for (const char* text : {callee, caller}) {
    nvrtcProgram program =
        compile::source(text, "compute_" + compile::architecture(), {"--relocatable-device-code=true"});
    auto part = compile::ptx(program);
    CHECK_DRIVER(cuLinkAddData(link, CU_JIT_INPUT_PTX, part.data(), part.size(), "part", 0, nullptr, nullptr));
    CHECK_LIBRARY(nvrtcDestroyProgram(&program));
  }
  void* image = nullptr;
  size_t size = 0;
  CHECK_DRIVER(cuLinkComplete(link, &image, &size));
  CHECK_THAT(image != nullptr && size > 0, "The linker made nothing.");
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CHECK_DRIVER(cuModuleLoadData(&module, image));
  CHECK_DRIVER(cuLinkDestroy(link));
  CHECK_DRIVER(cuModuleGetFunction(&function, module, "mix_all"));
  const auto x = library::numbers<float>(count, 1), y = library::numbers<float>(count, 2);
  float *dx = check::device_copy(x), *dy = check::device_copy(y);
  void* parameters[] = {&dx, &dy};
  CHECK_DRIVER(cuLaunchKernel(function, count / 256, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
  std::vector<double> right;
  for (size_t i = 0; i < count; ++i) right.push_back(library::as_double(x[i]) * 0.75 + library::as_double(y[i]) * 0.25);
  const auto got = check::host_copy(dy, count);
  library::check_near("linked", got, right, 1e-6);
  library::exact("linked", got);
  CHECK_DRIVER(cuModuleUnload(module));
}
