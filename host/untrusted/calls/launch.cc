// Launches. They are CUSTOM because the parameters are a property of the kernel. The guest packs them as the driver
// takes them through CU_LAUNCH_PARAM_BUFFER_POINTER, so the worker needs no layout.
#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/launch_config.h"
#include "host/untrusted/calls/parameters.h"

namespace host::calls {
namespace {

CUfunction function_of(const Taken<api::LaunchRecord>& t) { return t.handle<CUfunction>(&api::LaunchRecord::function); }

// A launch's parameters, as the driver takes them: packed. The driver remembers of a captured launch how it was given them, and
// tells the program, so that then they are given as the program gave them.
class Parameters {
 public:
  explicit Parameters(const Taken<api::LaunchRecord>& t)
      : bytes_(t.record.param_bytes),
        extra_{CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<std::byte*>(t.behind(&api::LaunchRecord::param_bytes)),
               CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes_, CU_LAUNCH_PARAM_END} {
    if (t.session().captures.any() && t.record.used_extra == 0)
      is_each_ =
          point_at_each(t.driver(), function_of(t), api::Id::of(t.record.function).kind, packed(), bytes_, each_);
  }
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  void** each() { return is_each_ ? each_.data() : nullptr; }
  void** extra() { return is_each_ ? nullptr : extra_; }

 private:
  std::byte* packed() { return static_cast<std::byte*>(extra_[1]); }

  std::size_t bytes_;
  void* extra_[5];
  std::vector<void*> each_;
  bool is_each_ = false;
};

}  // namespace

CUresult cuLaunchKernel(asked::cuLaunchKernel& a) {
  Parameters params(a);
  const auto& [gx, gy, gz] = a.record.grid;
  const auto& [bx, by, bz] = a.record.block;
  const auto stream = a.handle<CUstream>(&api::LaunchRecord::stream);
  return a.call(function_of(a), gx, gy, gz, bx, by, bz, a.record.shared, stream, params.each(), params.extra());
}

CUresult cuLaunchKernelEx(asked::cuLaunchKernelEx& a) {
  Parameters params(a);
  const LaunchConfig config(a);
  return a.call(config.get(), function_of(a), params.each(), params.extra());
}

}  // namespace host::calls
