// Host functions in a stream's order. The worker gives the driver a function of its own. This function makes the guest
// call the program's function.
#include "host/untrusted/callbacks/host_calls.h"
#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/node_parts.h"
#include "host/untrusted/marshal/captured.h"

namespace host::calls {
namespace {

// `give` passes the function to the driver. If the driver refuses the function, the worker returns the token to the
// guest.
template <class Give>
CUresult give_call(Session& session, std::uint64_t token, Give give) {
  auto call = std::make_unique<HostCall>(HostCall{session.callbacks.calls, token});
  const CUresult result = give(call.get());
  if (result == CUDA_SUCCESS)
    call.release();
  else if (session.callbacks.calls)
    session.callbacks.calls->forget(token);
  return result;
}

// Returns the graph that the stream's capture fills.
CUgraph captured_graph(const Driver& driver, CUstream stream) {
  auto status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = nullptr;
  driver.cuStreamGetCaptureInfo_v2(stream, &status, nullptr, &graph, nullptr, nullptr);
  return graph;
}

}  // namespace

CUresult cuLaunchHostFunc(call_of::cuLaunchHostFunc& a) {
  const auto stream = a.handle<CUstream>(&api::HostFunctionRecord::stream);
  if (a.session().graphs.captures.any())
    if (const CUstream captured = Captures::in_thread(stream, a.request.per_thread());
        is_captured(a.driver(), captured))
      return give_function(
          a.request, a.record.token, captured_graph(a.driver(), captured),
          [&](const CUDA_HOST_NODE_PARAMS* params) { return a.call(stream, params->fn, params->userData); });
  return give_call(a.session(), a.record.token,
                   [&](HostCall* call) { return a.call(stream, &HostCall::run, static_cast<void*>(call)); });
}

CUresult cuStreamAddCallback(call_of::cuStreamAddCallback& a) {
  const auto stream = a.handle<CUstream>(&api::HostFunctionRecord::stream);
  return give_call(a.session(), a.record.token, [&](HostCall* call) {
    return a.call(stream, &HostCall::run_with_status, static_cast<void*>(call), 0U);
  });
}

CUresult cuUserObjectCreate(call_of::cuUserObjectCreate& a) {
  const auto& [id, token, references, flags] = a.record;
  auto call = std::make_unique<HostCall>(HostCall{a.session().callbacks.calls, token, id});
  CUuserObject object = nullptr;
  const CUresult result =
      a.call(&object, static_cast<void*>(call.get()), &HostCall::destroy, references, static_cast<unsigned>(flags));
  if (result != CUDA_SUCCESS) return result;
  call.release();
  return a.put(object) ? CUDA_SUCCESS : a.request.broken();
}

}  // namespace host::calls
