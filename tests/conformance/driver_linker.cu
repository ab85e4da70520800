// The driver's own linker (cuLink): two inputs that NVRTC compiled, as PTX and as machine code, with options and a log,
// become one module.
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

enum class Form { Ptx, MachineCode };

void add_part(CUlinkState link, const char* text, Form form) {
  const std::string target = (form == Form::Ptx ? "compute_" : "sm_") + compile::architecture();
  nvrtcProgram program = compile::source(text, target, {"--relocatable-device-code=true"});
  auto part = form == Form::Ptx ? compile::ptx(program) : compile::cubin(program);
  const auto type = form == Form::Ptx ? CU_JIT_INPUT_PTX : CU_JIT_INPUT_CUBIN;
  CHECK_DRIVER(cuLinkAddData(link, type, part.data(), part.size(), "part", 0, nullptr, nullptr));
  CHECK_LIBRARY(nvrtcDestroyProgram(&program));
}

CUmodule linked(Form of_callee, Form of_caller) {
  static char log[4096];
  CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_OPTIMIZATION_LEVEL};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log), reinterpret_cast<void*>(4)};
  CUlinkState link = nullptr;
  CHECK_DRIVER(cuLinkCreate(3, options, values, &link));
  add_part(link, callee, of_callee);
  add_part(link, caller, of_caller);
  void* image = nullptr;
  size_t size = 0;
  CHECK_DRIVER(cuLinkComplete(link, &image, &size));
  CHECK_THAT(image != nullptr && size > 0, "The linker made nothing.");
  CUmodule module = nullptr;
  CHECK_DRIVER(cuModuleLoadData(&module, image));
  CHECK_DRIVER(cuLinkDestroy(link));
  return module;
}

void run(const char* what, CUmodule module) {
  CUfunction function = nullptr;
  CHECK_DRIVER(cuModuleGetFunction(&function, module, "mix_all"));
  const auto x = library::numbers<float>(count, 1), y = library::numbers<float>(count, 2);
  float *dx = check::device_copy(x), *dy = check::device_copy(y);
  void* parameters[] = {&dx, &dy};
  CHECK_DRIVER(cuLaunchKernel(function, count / 256, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
  std::vector<double> right;
  for (size_t i = 0; i < count; ++i) right.push_back(library::as_double(x[i]) * 0.75 + library::as_double(y[i]) * 0.25);
  const auto got = check::host_copy(dy, count);
  library::check_near(what, got, right, 1e-6);
  library::exact(what, got);
  CHECK_DRIVER(cuModuleUnload(module));
}

}  // namespace

int main() {
  CHECK_CUDA(cudaFree(nullptr));
  run("both in PTX", linked(Form::Ptx, Form::Ptx));
  run("PTX and machine code", linked(Form::MachineCode, Form::Ptx));
  run("both in machine code", linked(Form::MachineCode, Form::MachineCode));
}
