// What several calls that make nodes share.
#pragma once

#include "host/untrusted/lanes/host_calls.h"
#include "host/untrusted/marshal/taken.h"

namespace host::calls {

inline CUcontext context_of(const Request& r) { return r.session.contexts.find(ring::context_of(r.header.flags)); }

// The guest's token is not used: it ends.
inline void forget_token(const Session& session, std::uint64_t token) {
  if (session.callbacks.calls) session.callbacks.calls->forget(token);
}

// The graph that a node belongs to. Null: the session has no such node.
inline CUgraph graph_of(const Request& r, std::uint64_t node) {
  const Objects& objects = r.session.objects;
  return static_cast<CUgraph>(objects.find(objects.owner_of(node), api::Handle::Graph));
}

// Gives the driver a function for a node: one of ours, which has the guest call the program's. A node is run as often as the program
// likes, by the graph's executables and those of its clones. All of them keep a user object of the driver's, which ends the function
// behind the last of them; it goes to `graph`. Without a graph the function stays as long as the session, for an executable's own
// functions end with nothing that the driver tells of.
template <class Give>
CUresult give_function(const Request& r, std::uint64_t token, CUgraph graph, Give give, bool copies = false) {
  const Driver& driver = r.session.driver;
  auto* const call = new HostCall{.calls = r.session.callbacks.calls, .token = token, .object = 0, .copies = copies};
  CUuserObject keeper = nullptr;
  CUresult result = driver.cuUserObjectCreate(&keeper, call, &HostCall::end, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  if (result != CUDA_SUCCESS) return HostCall::end(call), result;
  const CUDA_HOST_NODE_PARAMS params{.fn = &HostCall::run_again, .userData = call};
  result = give(&params);
  if (result == CUDA_SUCCESS && graph != nullptr)
    driver.cuGraphRetainUserObject(graph, keeper, 1, CU_GRAPH_USER_OBJECT_MOVE);
  if (result != CUDA_SUCCESS) driver.cuUserObjectRelease(keeper, 1);
  return result;
}

}  // namespace host::calls
