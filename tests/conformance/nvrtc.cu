// NVRTC with the driver API: PTX and machine code, templates by name, a header from a string, constants, and the log of
// invalid code.
#include <cuda.h>

#include "tests/conformance/compile.h"

namespace {

constexpr char code[] = R"(
__constant__ float factor;
template <class T, int n>
__global__ void raise(T* values) {
  T& value = values[blockIdx.x * blockDim.x + threadIdx.x];
  T power = 1;
  for (int i = 0; i < n; ++i) power *= value;
  value = power * T(factor);
}
)";

// Raises 1/16 to 15/16 to a power, on the GPU and on the processor.
template <class T>
void raise(const std::vector<char>& image, const char* lowered, const char* constant, int power, const char* what) {
  const auto values = library::numbers<T>(4096, 1);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr data = 0, factor = 0;
  size_t size = 0;
  CHECK_DRIVER(cuModuleLoadData(&module, image.data()));
  CHECK_DRIVER(cuModuleGetFunction(&function, module, lowered));
  CHECK_DRIVER(cuModuleGetGlobal(&factor, &size, module, constant));
  CHECK_THAT(size == sizeof(float), "The constant has %zu bytes.", size);
  const float two = 2;
  CHECK_DRIVER(cuMemcpyHtoD(factor, &two, sizeof two));
  CHECK_DRIVER(cuMemAlloc(&data, values.size() * sizeof(T)));
  CHECK_DRIVER(cuMemcpyHtoD(data, values.data(), values.size() * sizeof(T)));
  void* parameters[] = {&data};
  CHECK_DRIVER(cuLaunchKernel(function, 16, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
  std::vector<T> got(values.size());
  CHECK_DRIVER(cuMemcpyDtoH(got.data(), data, got.size() * sizeof(T)));
  std::vector<double> right;
  for (T value : values) right.push_back(2 * std::pow(library::as_double(value), power));
  library::check_near(what, got, right, 1e-6);
  library::exact(what, got);
  CHECK_DRIVER(cuMemFree(data));
  CHECK_DRIVER(cuModuleUnload(module));
}

// `machine`: compiles machine code for this GPU only, instead of PTX.
void both_types(bool machine) {
  const char *singles = "raise<float, 5>", *doubles = "raise<double, 3>", *constant = "&factor";
  nvrtcProgram program = compile::source(code, (machine ? "sm_" : "compute_") + compile::architecture(),
                                         {"--std=c++17"}, {singles, doubles, constant});
  const char *lowered_singles = nullptr, *lowered_doubles = nullptr, *lowered_constant = nullptr;
  CHECK_LIBRARY(nvrtcGetLoweredName(program, singles, &lowered_singles));
  CHECK_LIBRARY(nvrtcGetLoweredName(program, doubles, &lowered_doubles));
  CHECK_LIBRARY(nvrtcGetLoweredName(program, constant, &lowered_constant));
  const auto image = machine ? compile::cubin(program) : compile::ptx(program);
  raise<float>(image, lowered_singles, lowered_constant, 5, machine ? "float, machine code" : "float, PTX");
  raise<double>(image, lowered_doubles, lowered_constant, 3, machine ? "double, machine code" : "double, PTX");
  CHECK_LIBRARY(nvrtcDestroyProgram(&program));
}

void headers() {
  const char *text = "constexpr int answer = 42;", *name = "answer.h";
  nvrtcProgram program = nullptr;
  CHECK_LIBRARY(nvrtcCreateProgram(
      &program, "#include \"answer.h\"\nextern \"C\" __global__ void ask(int* out) { *out = answer; }", "ask.cu", 1,
      &text, &name));
  const std::string target = "--gpu-architecture=compute_" + compile::architecture();
  const char* options[] = {target.c_str()};
  CHECK_LIBRARY(nvrtcCompileProgram(program, 1, options));
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CHECK_DRIVER(cuModuleLoadData(&module, compile::ptx(program).data()));
  CHECK_DRIVER(cuModuleGetFunction(&function, module, "ask"));
  int* out = check::device_buffer<int>(1);
  void* parameters[] = {&out};
  CHECK_DRIVER(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  std::printf("answer %d\n", check::host_copy(out, 1)[0]);
  CHECK_LIBRARY(nvrtcDestroyProgram(&program));
}

void wrong_code() {
  nvrtcProgram program = nullptr;
  CHECK_LIBRARY(nvrtcCreateProgram(&program, "__global__ void k() { nothing = 1; }", "wrong.cu", 0, nullptr, nullptr));
  std::printf("wrong code: %s\n", nvrtcGetErrorString(nvrtcCompileProgram(program, 0, nullptr)));
  CHECK_THAT(compile::log_of(program).find("nothing") != std::string::npos, "The log does not name what is wrong.");
}

}  // namespace

int main() {
  CHECK_CUDA(cudaFree(nullptr));  // creates the runtime's context, which the driver's calls then use
  both_types(false);
  headers();
  wrong_code();
  both_types(true);
}
