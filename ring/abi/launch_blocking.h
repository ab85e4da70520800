// CUDA_LAUNCH_BLOCKING, as the driver reads this variable in cuInit.
//
// Source: an H200 with driver 580.159.04 (tests/probes/launch_blocking.cc). The driver parses the variable in cuInit,
// like atoi(), and only the value 1 enables blocking: "1", " 1", "01" and "1x" do; "", "0", "2" and "x" do not. With
// blocking enabled, cuLaunchKernel, cuLaunchKernelEx, a cooperative launch and cuGraphLaunch return when their kernels
// have run, with the kernel's error. Fills and copies within the device also wait, but report no kernel's error.
//
// ```cpp
// bool waits_for_launches() { return cuabi::launches_block(std::getenv(cuabi::launch_blocking_variable)); }
// ```
#pragma once

#include <cstdlib>

namespace cuabi {

inline constexpr const char* launch_blocking_variable = "CUDA_LAUNCH_BLOCKING";

// Returns whether each launch waits for its kernel and returns the kernel's error. `value`: the variable's value, or
// null.
inline bool launches_block(const char* value) { return value != nullptr && std::atoi(value) == 1; }

}  // namespace cuabi
