// CUDA_LAUNCH_BLOCKING, as every libcuda reads it when it is initialised.
#pragma once

#include <string_view>

namespace cuabi {

inline constexpr const char* launch_blocking_variable = "CUDA_LAUNCH_BLOCKING";

// Whether each launch waits for its kernel, and returns the kernel's error. `value`: the variable's, or null.
inline bool launches_block(const char* value) { return value != nullptr && std::string_view(value) == "1"; }

}  // namespace cuabi
