// Code that NVRTC compiles at run time, for the program's GPU.
#pragma once

#include <nvrtc.h>

#include <string>

#include "tests/conformance/library.h"

namespace compile {

// The GPU's architecture, such as "90".
inline std::string architecture() {
  int major = 0, minor = 0;
  CHECK_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  CHECK_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
  return std::to_string(major) + std::to_string(minor);
}

inline std::string log_of(nvrtcProgram program) {
  size_t size = 0;
  CHECK_LIBRARY(nvrtcGetProgramLogSize(program, &size));
  std::string text(size, ' ');
  CHECK_LIBRARY(nvrtcGetProgramLog(program, text.data()));
  return text;
}

// Compiles for the architecture ("compute_90" or "sm_90"). The caller destroys the returned program.
inline nvrtcProgram source(const char* text, const std::string& target, std::vector<std::string> more = {},
                           const std::vector<const char*>& names = {}) {
  nvrtcProgram program = nullptr;
  CHECK_LIBRARY(nvrtcCreateProgram(&program, text, "made.cu", 0, nullptr, nullptr));
  for (const char* name : names) CHECK_LIBRARY(nvrtcAddNameExpression(program, name));
  more.push_back("--gpu-architecture=" + target);
  std::vector<const char*> options;
  for (const std::string& option : more) options.push_back(option.c_str());
  const nvrtcResult result = nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
  CHECK_THAT(result == NVRTC_SUCCESS, "%s: %s", nvrtcGetErrorString(result), log_of(program).c_str());
  return program;
}

using Size = nvrtcResult (*)(nvrtcProgram, size_t*);
using Take = nvrtcResult (*)(nvrtcProgram, char*);
inline std::vector<char> take(nvrtcProgram program, Size size_of, Take take_from) {
  size_t size = 0;
  CHECK_LIBRARY(size_of(program, &size));
  std::vector<char> bytes(size);
  CHECK_LIBRARY(take_from(program, bytes.data()));
  return bytes;
}
inline std::vector<char> ptx(nvrtcProgram program) { return take(program, nvrtcGetPTXSize, nvrtcGetPTX); }
inline std::vector<char> cubin(nvrtcProgram program) { return take(program, nvrtcGetCUBINSize, nvrtcGetCUBIN); }
inline std::vector<char> link_code(nvrtcProgram program) { return take(program, nvrtcGetLTOIRSize, nvrtcGetLTOIR); }

}  // namespace compile
