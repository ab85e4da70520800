// A function's next launch, as a program describes it by CUDA 3's calls (cuFuncSetBlockShape, cuParamSetv, ...) before
// cuLaunch, cuLaunchGrid or cuLaunchGridAsync.
//
// Each function has one OldLaunch, which belongs to the library that serves these calls. Any thread may call an
// OldLaunch. Sizes are in bytes; the errors are the driver's.
//
// ```cpp
// CUresult describe(cuabi::OldLaunch& next, int value) {
//   if (const CUresult bad = next.set_block(256, 1, 1); bad != CUDA_SUCCESS) return bad;
//   if (const CUresult bad = next.set(0, &value, sizeof value); bad != CUDA_SUCCESS) return bad;
//   return next.set_size(sizeof value);
// }
// ```
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "ring/base/mutex.h"

namespace cuabi {

class OldLaunch {
 public:
  static constexpr std::size_t most_bytes = 4096;  // the most bytes of parameters

  // A snapshot of the described launch.
  struct Asked {
    int block[3] = {1, 1, 1};
    unsigned shared = 0, bytes = 0;
    std::vector<std::byte> parameters;  // up to the last byte that was ever set
  };

  CUresult set_block(int x, int y, int z) {
    constexpr long long most_threads = 1024;
    if (x < 1 || y < 1 || z < 1 || x > most_threads || y > most_threads || z > 64) return CUDA_ERROR_INVALID_VALUE;
    if (static_cast<long long>(x) * y * z > most_threads) return CUDA_ERROR_INVALID_VALUE;
    const ring::MutexLock lock(mutex_);
    asked_.block[0] = x, asked_.block[1] = y, asked_.block[2] = z;
    return CUDA_SUCCESS;
  }
  CUresult set_shared(unsigned bytes) {
    const ring::MutexLock lock(mutex_);
    asked_.shared = bytes;
    return CUDA_SUCCESS;
  }
  CUresult set_size(unsigned bytes) {
    if (bytes > most_bytes) return CUDA_ERROR_INVALID_VALUE;
    const ring::MutexLock lock(mutex_);
    asked_.bytes = bytes;
    return CUDA_SUCCESS;
  }
  CUresult set(int offset, const void* from, std::size_t bytes) {
    const auto at = static_cast<std::size_t>(offset);
    if (offset < 0 || from == nullptr || at > most_bytes || bytes > most_bytes - at) return CUDA_ERROR_INVALID_VALUE;
    const ring::MutexLock lock(mutex_);
    if (asked_.parameters.size() < at + bytes) asked_.parameters.resize(at + bytes);
    if (bytes != 0) std::memcpy(asked_.parameters.data() + at, from, bytes);
    return CUDA_SUCCESS;
  }

  // Launches the described kernel. `launch` does cuLaunchKernel's work with the block, the shared memory and `extra`.
  template <class F>
  CUresult launch(int width, int height, F&& launch) const {
    if (width < 1 || height < 1) return CUDA_ERROR_INVALID_VALUE;
    Asked now;
    {
      const ring::MutexLock lock(mutex_);
      now = asked_;
    }
    std::size_t size = now.bytes;
    now.parameters.resize(std::max<std::size_t>(size, 1));
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, now.parameters.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    return launch(now, extra);
  }

 private:
  mutable ring::Mutex mutex_;
  Asked asked_ GUARDED_BY(mutex_);
};

}  // namespace cuabi
