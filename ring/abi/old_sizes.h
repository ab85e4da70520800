// CUDA 3's cuDeviceTotalMem and cuMemGetInfo, which return sizes of 32 bits. Programs that take a symbol without its
// version by name still call these two forms (docs/design/051-forms-of-cuda-3.md). All functions are pure.
//
// ```cpp
// unsigned total_of(std::size_t bytes) { return cuabi::size_in_32_bits(bytes); }  // 0xffffffff from 4 GiB on
// ```
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

namespace cuabi {

// Returns whether cuMemGetInfo works in a context of this version (cuCtxGetApiVersion). The old cuCtxCreate makes
// version 3010.
constexpr bool old_sizes_work_in(unsigned api_version) { return api_version <= 3010; }

// Clamps a size that does not fit, as the driver does.
constexpr unsigned size_in_32_bits(std::size_t size) {
  return static_cast<unsigned>(std::min<std::size_t>(size, std::numeric_limits<unsigned>::max()));
}

}  // namespace cuabi
