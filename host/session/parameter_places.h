// Where the parameters of kernels lie in their packed block, as the driver has told it. To ask it takes a call for each parameter.
//
// Thread-safety: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "host/driver/driver.h"
#include "ring/api/id.h"

namespace host {

struct ParameterPlace {
  std::size_t offset, size;
};
using Places = std::vector<ParameterPlace>;

class ParameterPlaces {
 public:
  // `id`: of the function, or of the kernel that stands for it. Null: the driver does not say.
  std::shared_ptr<const Places> of(const Driver& driver, std::uint64_t id, CUfunction function) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = known_.find(id); found != known_.end()) return found->second;
    }
    const auto places = std::make_shared<Places>();
    for (std::size_t i = 0;; ++i) {
      ParameterPlace place{};
      const CUresult told =
          api::Id::of(id).kind == api::Handle::Kernel
              ? driver.cuKernelGetParamInfo(reinterpret_cast<CUkernel>(function), i, &place.offset, &place.size)
              : driver.cuFuncGetParamInfo(function, i, &place.offset, &place.size);
      if (told == CUDA_ERROR_INVALID_VALUE) break;  // there is no such parameter
      if (told != CUDA_SUCCESS) return nullptr;
      places->push_back(place);
    }
    const std::lock_guard lock(mutex_);
    if (known_.size() >= most) known_.clear();
    return known_[id] = places;
  }

 private:
  // A guest chooses how many functions it has. A program with more of them in its captures asks some again.
  static constexpr std::size_t most = 4096;

  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<const Places>> known_;  // ids are never given again
};

}  // namespace host
