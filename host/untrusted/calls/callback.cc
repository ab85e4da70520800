// Functions of the program's in a stream's order: the driver gets one of ours, which has the guest call the program's.
#include "host/untrusted/calls/calls.h"
#include "host/untrusted/captured.h"
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

// The graph that the stream's capture fills.
CUgraph graph_of(const Driver& driver, CUstream stream) {
  auto status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = nullptr;
  driver.cuStreamGetCaptureInfo_v2(stream, &status, nullptr, &graph, nullptr, nullptr);
  return graph;
}

// A node is run as often as the program likes, by the graph's executables and those of its clones. All of them keep a user object
// of the driver's, which ends the call behind the last of them.
CUresult capture_call(asked::cuLaunchHostFunc& a, CUstream stream) {
  const Driver& driver = a.driver();
  auto* const call = new HostCall{a.session().host_calls, a.record.token};
  CUuserObject keeper = nullptr;
  CUresult result = driver.cuUserObjectCreate(&keeper, call, &HostCall::end, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  if (result != CUDA_SUCCESS) return HostCall::end(call), result;
  result = a.call(a.handle<CUstream>(&api::HostFunctionRecord::stream), &HostCall::run_again, static_cast<void*>(call));
  CUgraph const graph = result == CUDA_SUCCESS ? graph_of(driver, stream) : nullptr;
  const bool kept =
      graph != nullptr && driver.cuGraphRetainUserObject(graph, keeper, 1, CU_GRAPH_USER_OBJECT_MOVE) == CUDA_SUCCESS;
  if (!kept) driver.cuUserObjectRelease(keeper, 1);
  return result;
}

}  // namespace

CUresult cuLaunchHostFunc(asked::cuLaunchHostFunc& a) {
  const auto stream = a.handle<CUstream>(&api::HostFunctionRecord::stream);
  if (a.session().captures.any())
    if (const CUstream captured = Captures::in_thread(stream, a.request.per_thread());
        is_captured(a.driver(), captured))
      return capture_call(a, captured);
  return give_call(a.session(), a.record.token,
                   [&](HostCall* call) { return a.call(stream, &HostCall::run, static_cast<void*>(call)); });
}

CUresult cuStreamAddCallback(asked::cuStreamAddCallback& a) {
  const auto stream = a.handle<CUstream>(&api::HostFunctionRecord::stream);
  return give_call(a.session(), a.record.token, [&](HostCall* call) {
    return a.call(stream, &HostCall::run_with_status, static_cast<void*>(call), 0U);
  });
}

CUresult cuUserObjectCreate(asked::cuUserObjectCreate& a) {
  const auto& [id, token, references, flags] = a.record;
  auto call = std::make_unique<HostCall>(HostCall{a.session().host_calls, token, id});
  CUuserObject object = nullptr;
  const CUresult result =
      a.call(&object, static_cast<void*>(call.get()), &HostCall::destroy, references, static_cast<unsigned>(flags));
  if (result != CUDA_SUCCESS) return result;
  call.release();
  return a.put(object) ? CUDA_SUCCESS : a.request.broken();
}

}  // namespace host::calls
