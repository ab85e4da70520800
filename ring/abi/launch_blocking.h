// CUDA_LAUNCH_BLOCKING, as every libcuda reads it when it is initialised.
//
// Source: an H200 with driver 580.159.04 (tests/probes/launch_blocking.cc). The driver reads the variable in cuInit,
// like atoi(), and only 1 switches it on: "1", " 1", "01" and "1x" do; "", "0", "2" and "x" do not. Then
// cuLaunchKernel, cuLaunchKernelEx, a cooperative launch and cuGraphLaunch return when their kernels have run, with the
// kernel's error. Fills and copies within the device also wait, but report no kernel's error.
//
// ```cpp
// bool waits_for_launches() { return cuabi::launches_block(std::getenv(cuabi::launch_blocking_variable)); }
// ```
#pragma once

#include <cstdlib>

namespace cuabi {

inline constexpr const char* launch_blocking_variable = "CUDA_LAUNCH_BLOCKING";

// Whether each launch waits for its kernel and returns the kernel's error. `value`: the variable's value, or null.
inline bool launches_block(const char* value) { return value != nullptr && std::atoi(value) == 1; }

}  // namespace cuabi
