// Functions that all calls that make nodes share.
#pragma once

#include "host/untrusted/callbacks/host_calls.h"
#include "host/untrusted/marshal/decoded_request.h"

namespace host::calls {

inline CUcontext context_of(const Request& r) { return r.session.contexts.find(ring::context_of(r.header.flags)); }

// Releases the guest's token, because no function will use it.
inline void forget_token(const Session& session, std::uint64_t token) {
  if (session.callbacks.calls) session.callbacks.calls->forget(token);
}

// Returns the graph of a node, or null if the session does not have the node.
inline CUgraph graph_of(const Request& r, std::uint64_t node) {
  const Objects& objects = r.session.objects;
  return static_cast<CUgraph>(objects.find(objects.owner_of(node), api::Handle::Graph));
}

// Gives the driver a function of the worker for a node. This function makes the guest call the program's function. A
// node may run often, in the graph's executables and in those of its clones. All these graphs reference a user object,
// and the driver ends the function with the last reference. The user object belongs to `graph`. Without a graph the
// function exists as long as the session, because the driver does not report the end of an executable's own functions.
template <class Give>
CUresult give_function(const Request& r, std::uint64_t token, CUgraph graph, Give give, bool copies = false) {
  const Driver& driver = r.session.driver;
  auto* const call = new HostCall{.calls = r.session.callbacks.calls, .token = token, .object = 0, .copies = copies};
  CUuserObject user_object = nullptr;
  CUresult result = driver.cuUserObjectCreate(&user_object, call, &HostCall::end, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  if (result != CUDA_SUCCESS) {
    HostCall::end(call);
    return result;
  }
  const CUDA_HOST_NODE_PARAMS params{.fn = &HostCall::run_again, .userData = call};
  result = give(&params);
  if (result == CUDA_SUCCESS && graph != nullptr)
    driver.cuGraphRetainUserObject(graph, user_object, 1, CU_GRAPH_USER_OBJECT_MOVE);
  if (result != CUDA_SUCCESS) driver.cuUserObjectRelease(user_object, 1);
  return result;
}

}  // namespace host::calls
