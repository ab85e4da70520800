// A kernel's parameters for the driver: as one packed block, or one by one.
#pragma once

#include <algorithm>
#include <cstddef>

#include <boost/container/small_vector.hpp>

#include "host/session/session.h"

namespace host {

// The driver remembers whether the parameters of captured launches and of nodes were packed, and reports this to the
// program.
class Parameters {
 public:
  // `id`: as for ParameterPlaces. `packed`: from the record, which outlives this object. `one_by_one`: pass the
  // parameters one by one, if the block is long enough for the kernel and the driver reports the parameters' places.
  Parameters(Session& session, std::uint64_t id, CUfunction function, const std::byte* packed, std::size_t bytes,
             bool one_by_one)
      : bytes_(bytes),
        extra_{CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<std::byte*>(packed), CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes_,
               CU_LAUNCH_PARAM_END} {
    if (!one_by_one) return;
    const auto places = session.code.parameter_places.of(session.driver, id, function);
    if (places == nullptr) return;
    const auto is_outside = [&](const ParameterPlace& p) { return p.size > bytes || p.offset > bytes - p.size; };
    each_.reserve(places->size() + 1);
    if (std::ranges::any_of(*places, is_outside)) return;
    for (const ParameterPlace& place : *places) each_.push_back(const_cast<std::byte*>(packed) + place.offset);
    if (each_.empty()) each_.push_back(nullptr);  // a kernel without parameters needs a non-null array
  }
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  // Exactly one of each() and extra() is null.
  void** each() { return each_.empty() ? nullptr : each_.data(); }
  void** extra() { return each_.empty() ? extra_ : nullptr; }

 private:
  std::size_t bytes_;
  void* extra_[5];
  boost::container::small_vector<void*, 32> each_;  // most kernels have at most 32 parameters
};

}  // namespace host
