// nvJitLink: two parts of a program, compiled separately by NVRTC, are linked at run time, once as intermediate code
// with optimisation of the whole and once as PTX. The result is loaded as a library of the runtime.
#include <nvJitLink.h>

#include "tests/conformance/compile.h"

namespace {

constexpr char callee[] = "__device__ int weigh(int x) { return 3 * x + 1; }";
constexpr char caller[] = R"(
extern __device__ int weigh(int x);
extern "C" __global__ void weigh_all(int* values) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = weigh(values[i]);
}
)";
constexpr unsigned count = 2048;

std::vector<char> link(bool optimised) {
  const std::string architecture = compile::architecture(), target = "-arch=sm_" + architecture;
  const char* options[] = {target.c_str(), "-lto"};
  nvJitLinkHandle linker = nullptr;
  CHECK_LIBRARY(nvJitLinkCreate(&linker, optimised ? 2 : 1, options));
  for (const char* text : {callee, caller}) {
    std::vector<std::string> more = {"--relocatable-device-code=true"};
    if (optimised) more.emplace_back("-dlto");
    nvrtcProgram program = compile::source(text, "compute_" + architecture, more);
    const auto part = optimised ? compile::link_code(program) : compile::ptx(program);
    CHECK_LIBRARY(nvJitLinkAddData(linker, optimised ? NVJITLINK_INPUT_LTOIR : NVJITLINK_INPUT_PTX, part.data(),
                                   part.size(), "part"));
    CHECK_LIBRARY(nvrtcDestroyProgram(&program));
  }
  CHECK_LIBRARY(nvJitLinkComplete(linker));
  size_t size = 0;
  CHECK_LIBRARY(nvJitLinkGetLinkedCubinSize(linker, &size));
  std::vector<char> image(size);
  CHECK_LIBRARY(nvJitLinkGetLinkedCubin(linker, image.data()));
  CHECK_LIBRARY(nvJitLinkDestroy(&linker));
  return image;
}

void run(const std::vector<char>& image, const char* what) {
  cudaLibrary_t loaded = nullptr;
  cudaKernel_t kernel = nullptr;
  CHECK_CUDA(cudaLibraryLoadData(&loaded, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CHECK_CUDA(cudaLibraryGetKernel(&kernel, loaded, "weigh_all"));
  std::vector<int> values(count), right(count);
  for (unsigned i = 0; i < count; ++i) {
    values[i] = check::small_number(i, 1);
    right[i] = 3 * values[i] + 1;
  }
  int* data = check::device_copy(values);
  void* parameters[] = {&data};
  CHECK_CUDA(
      cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(count / 256), dim3(256), parameters, 0, nullptr));
  const auto got = check::host_copy(data, count);
  check::compare(what, got, right);
  library::exact(what, got);
  CHECK_CUDA(cudaLibraryUnload(loaded));
}

}  // namespace

int main() {
  run(link(true), "intermediate code");
  run(link(false), "PTX");
}
