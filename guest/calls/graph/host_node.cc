// Graph nodes that call the program's functions. A node's function has a token until the driver releases the node
// (guest/session/callbacks.h).
#include "guest/calls/calls.h"
#include "guest/calls/graph/nodes.h"
#include "guest/session/callbacks.h"

namespace guest::calls {
namespace {

CUresult call_node(const Callback& callback, CUresult) {
  reinterpret_cast<CUhostFn>(callback.of_program)(callback.argument);
  return CUDA_SUCCESS;
}

// Creates a token for the node's function. The worker ends the token. Returns 0 if no token can be created.
std::uint64_t token_of(const CUDA_HOST_NODE_PARAMS& p) {
  return session()->callbacks().issue({.function = call_node,
                                       .argument = p.userData,
                                       .life = Callback::Life::UntilEnded,
                                       .of_program = reinterpret_cast<void (*)()>(p.fn)});
}

// Creates a token and calls `send(token)`, which sends the token to the worker. The worker ends the token if the driver
// refuses the node.
template <class Send>
CUresult with_token(const CUDA_HOST_NODE_PARAMS* p, Send send) {
  if (p == nullptr || p->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t token = token_of(*p);
  if (token == 0) return session()->liveness().lost() ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_ERROR_OUT_OF_MEMORY;
  return send(token);
}

}  // namespace

CUresult cuGraphAddHostNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* nodes, std::size_t count,
                            const CUDA_HOST_NODE_PARAMS* p) {
  Context* context = nullptr;
  if (const CUresult r = enter_without_context(context); r != CUDA_SUCCESS) return r;
  const Dependencies dependencies{nodes, count};
  if (out == nullptr || graph_object(graph) == nullptr || !dependencies.known()) return CUDA_ERROR_INVALID_VALUE;
  return with_token(p, [&](std::uint64_t token) {
    api::AddHostNodeRecord record{.graph = 0, .dependencies = 0, .token = token};
    return add(api::id_of::cuGraphAddHostNode, *context, record, out, graph, dependencies);
  });
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* p) {
  Context* context = nullptr;
  if (const CUresult r = enter_without_context(context); r != CUDA_SUCCESS) return r;
  if (node_object(node) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_token(p, [&](std::uint64_t token) {
    const api::SetHostNodeRecord record{.node = api::number_of(node), .token = token};
    return cross({.call = api::id_of::cuGraphHostNodeSetParams, .context = *context}, record).result;
  });
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* p) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  Object* const object = exec_object(exec);
  if (object == nullptr || node_object(node) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!wait_for_object(*object, this_channel())) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  return with_token(p, [&](std::uint64_t token) {
    const api::ExecHostNodeRecord record{.exec = api::number_of(exec), .node = api::number_of(node), .token = token};
    return cross({.call = api::id_of::cuGraphExecHostNodeSetParams, .context = *context}, record).result;
  });
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* p) {
  Context* context = nullptr;
  if (const CUresult r = enter_without_context(context); r != CUDA_SUCCESS) return r;
  if (p == nullptr || node_object(node) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t token = 0;
  const auto read = [&](CUresult result, ring::SharedReader& r) {
    if (result == CUDA_SUCCESS) token = r.slot();
  };
  const api::GetHostNodeRecord record{.node = api::number_of(node)};
  const Sent sent = cross({.call = api::id_of::cuGraphHostNodeGetParams, .context = *context}, record, {}, read);
  if (sent.result != CUDA_SUCCESS) return sent.result;
  const auto callback = session()->callbacks().find(token);
  if (!callback) return CUDA_ERROR_INVALID_VALUE;
  p->fn = reinterpret_cast<CUhostFn>(callback->of_program);
  p->userData = callback->argument;
  return CUDA_SUCCESS;
}

}  // namespace guest::calls
