// The guest program of the jail's test. It passes lines from its standard input to the misbehaving driver, and prints
// the results. It ends with the session.
//
// usage: jail_program LIBCUDA
#include <array>
#include <cstdio>
#include <iostream>
#include <string>

#include "tests/jail/wish.h"
#include "tests/named_driver.h"

namespace {

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
  if (argc != 2 || open_library(argv[1]) == nullptr) return 2;
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
