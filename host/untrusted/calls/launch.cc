// Launches. They are CUSTOM because the parameters are a property of the kernel. The guest packs them as the driver
// takes them through CU_LAUNCH_PARAM_BUFFER_POINTER, so the worker needs no layout.
#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/launch_config.h"

namespace host::calls {
namespace {

// A launch's parameters, as the driver takes them.
class Packed {
 public:
  explicit Packed(const Taken<api::LaunchRecord>& t)
      : bytes_(t.record.param_bytes),
        extra_{CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<std::byte*>(t.behind(&api::LaunchRecord::param_bytes)),
               CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes_, CU_LAUNCH_PARAM_END} {}
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;

  void** extra() { return extra_; }

 private:
  std::size_t bytes_;
  void* extra_[5];
};

CUfunction function_of(const Taken<api::LaunchRecord>& t) { return t.handle<CUfunction>(&api::LaunchRecord::function); }

}  // namespace

CUresult cuLaunchKernel(asked::cuLaunchKernel& a) {
  Packed params(a);
  const auto& [gx, gy, gz] = a.record.grid;
  const auto& [bx, by, bz] = a.record.block;
  const auto stream = a.handle<CUstream>(&api::LaunchRecord::stream);
  return a.call(function_of(a), gx, gy, gz, bx, by, bz, a.record.shared, stream, nullptr, params.extra());
}

CUresult cuLaunchKernelEx(asked::cuLaunchKernelEx& a) {
  Packed params(a);
  const LaunchConfig config(a);
  return a.call(config.get(), function_of(a), nullptr, params.extra());
}

}  // namespace host::calls
