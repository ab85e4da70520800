// The configuration of a launch record for cuLaunchKernelEx. Precondition: the record outlives this object.
#pragma once

#include "host/untrusted/marshal/decoded_request.h"

namespace host::calls {

class LaunchConfig {
 public:
  template <class R>
  explicit LaunchConfig(const DecodedRequest<R>& t) {
    const api::LaunchRecord& record = t.record;
    config_.gridDimX = record.grid[0], config_.gridDimY = record.grid[1], config_.gridDimZ = record.grid[2];
    config_.blockDimX = record.block[0], config_.blockDimY = record.block[1], config_.blockDimZ = record.block[2];
    config_.sharedMemBytes = record.shared;
    config_.hStream = t.template handle<CUstream>(&api::LaunchRecord::stream);
    config_.attrs = const_cast<CUlaunchAttribute*>(t.attributes());
    config_.numAttrs = record.attributes;
  }
  LaunchConfig(const LaunchConfig&) = delete;
  LaunchConfig& operator=(const LaunchConfig&) = delete;

  const CUlaunchConfig* get() const { return &config_; }

 private:
  CUlaunchConfig config_{};
};

}  // namespace host::calls
