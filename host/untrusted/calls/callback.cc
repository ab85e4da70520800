// Functions of the program's in a stream's order: the driver gets one of ours, which has the guest call the program's.
#include "host/untrusted/calls/calls.h"
#include "host/untrusted/host_calls.h"

namespace host::calls {
namespace {

// `give` hands the call to the driver. Where the driver refuses it, the worker gives the token back to the guest.
template <class Give>
CUresult give_call(Session& session, std::uint64_t token, Give give) {
  auto call = std::make_unique<HostCall>(HostCall{session.host_calls, token});
  const CUresult result = give(call.get());
  if (result == CUDA_SUCCESS)
    call.release();
  else if (session.host_calls)
    session.host_calls->forget(token);
  return result;
}

}  // namespace

CUresult cuLaunchHostFunc(asked::cuLaunchHostFunc& a) {
  const auto stream = a.handle<CUstream>(&api::HostFunctionRecord::stream);
  return give_call(a.session(), a.record.token,
                   [&](HostCall* call) { return a.call(stream, &HostCall::run, static_cast<void*>(call)); });
}

CUresult cuStreamAddCallback(asked::cuStreamAddCallback& a) {
  const auto stream = a.handle<CUstream>(&api::HostFunctionRecord::stream);
  return give_call(a.session(), a.record.token, [&](HostCall* call) {
    return a.call(stream, &HostCall::run_with_status, static_cast<void*>(call), 0U);
  });
}

}  // namespace host::calls
