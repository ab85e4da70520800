// The offsets and sizes of kernels' parameters in their packed block, cached because each query costs a driver call.
//
// Thread-safety: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "host/driver/driver.h"
#include "ring/api/id.h"
#include "ring/base/mutex.h"

namespace host {

struct ParameterPlace {
  std::size_t offset, size;
};
using Places = std::vector<ParameterPlace>;

class ParameterPlaces {
 public:
  // Returns the parameters of a function. `id`: the id of the function, or of its kernel. Returns null if the driver
  // does not report the parameters.
  std::shared_ptr<const Places> of(const Driver& driver, std::uint64_t id, CUfunction function) {
    {
      const ring::MutexLock lock(mutex_);
      if (const auto found = known_.find(id); found != known_.end()) return found->second;
    }
    const auto places = std::make_shared<Places>();
    for (std::size_t i = 0;; ++i) {
      ParameterPlace place{};
      const CUresult answered =
          api::Id::of(id).kind == api::Handle::Kernel
              ? driver.cuKernelGetParamInfo(reinterpret_cast<CUkernel>(function), i, &place.offset, &place.size)
              : driver.cuFuncGetParamInfo(function, i, &place.offset, &place.size);
      if (answered == CUDA_ERROR_INVALID_VALUE) break;  // the kernel has no more parameters
      if (answered != CUDA_SUCCESS) return nullptr;
      places->push_back(place);
    }
    const ring::MutexLock lock(mutex_);
    if (known_.size() >= most) known_.clear();
    return known_[id] = places;
  }

 private:
  // The guest chooses the number of functions. If more functions than this are captured, the worker queries the driver
  // again for some of them.
  static constexpr std::size_t most = 4096;

  ring::Mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<const Places>> known_ GUARDED_BY(mutex_);  // ids are never reused
};

}  // namespace host
