// Launches. These calls are handwritten because each kernel has its own parameters. The guest packs the parameters as
// the driver accepts them through CU_LAUNCH_PARAM_BUFFER_POINTER, so the worker needs no parameter layout.
#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/launch_config.h"
#include "host/untrusted/calls/parameters.h"

namespace host::calls {
namespace {

CUfunction function_of(const DecodedRequest<api::LaunchRecord>& t) {
  return t.handle<CUfunction>(&api::LaunchRecord::function);
}

// A launch that is not captured passes the packed block, which needs no layout.
Parameters parameters_of(const DecodedRequest<api::LaunchRecord>& t) {
  return {t.session(),          t.record.function,
          function_of(t),       t.behind(&api::LaunchRecord::param_bytes),
          t.record.param_bytes, t.session().graphs.captures.any() && t.record.used_extra == 0};
}

}  // namespace

CUresult cuLaunchKernel(call_of::cuLaunchKernel& a) {
  Parameters params = parameters_of(a);
  const auto& [gx, gy, gz] = a.record.grid;
  const auto& [bx, by, bz] = a.record.block;
  const auto stream = a.handle<CUstream>(&api::LaunchRecord::stream);
  return a.call(function_of(a), gx, gy, gz, bx, by, bz, a.record.shared, stream, params.each(), params.extra());
}

CUresult cuLaunchKernelEx(call_of::cuLaunchKernelEx& a) {
  Parameters params = parameters_of(a);
  const LaunchConfig config(a);
  return a.call(config.get(), function_of(a), params.each(), params.extra());
}

}  // namespace host::calls
