// The guest program of the jail's test: passes lines from its standard input to the misbehaving driver, and prints what
// came of each. Ends with the session.
//
// usage: jail_program LIBCUDA
#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <iostream>
#include <string>

#include "ring/api/cuda.h"
#include "tests/jail/wish.h"

namespace {

void* library = nullptr;

template <class F>
F find(const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}
#define CU(fn) find<decltype(&::fn)>(#fn)

CUresult pass_on(CUdeviceptr at, const std::string& wish, std::string& answer) {
  std::array<char, misbehave::wish_bytes> text{};
  wish.copy(text.data(), text.size() - 1);
  CUresult result = CU(cuMemcpyHtoD_v2)(at, text.data(), text.size());
  if (result == CUDA_SUCCESS) result = CU(cuMemsetD32_v2)(at, misbehave::wish, text.size() / 4);
  if (result == CUDA_SUCCESS) result = CU(cuMemcpyDtoH_v2)(text.data(), at, text.size());
  text.back() = '\0';
  answer = text.data();
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (library == nullptr) return 2;
  CUcontext context = nullptr;
  CUdeviceptr at = 0;
  if (CU(cuInit)(0) != CUDA_SUCCESS || CU(cuDevicePrimaryCtxRetain)(&context, 0) != CUDA_SUCCESS ||
      CU(cuCtxSetCurrent)(context) != CUDA_SUCCESS || CU(cuMemAlloc_v2)(&at, misbehave::wish_bytes) != CUDA_SUCCESS)
    return 3;
  for (std::string wish, answer; std::getline(std::cin, wish);) {
    const CUresult result = pass_on(at, wish, answer);
    if (result != CUDA_SUCCESS) return std::printf("lost %d\n", static_cast<int>(result)), 0;
    std::puts(answer.c_str());
    std::fflush(stdout);
  }
  return 0;
}
