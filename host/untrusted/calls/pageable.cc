// Copies of the program's own memory in graphs: the session's calls by which the guest makes these nodes.
#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/copy_side.h"
#include "host/untrusted/calls/found_nodes.h"
#include "host/untrusted/calls/node_parts.h"
#include "host/untrusted/calls/pageable_node.h"
#include "host/untrusted/marshal/captured.h"

namespace host::calls {
namespace {

// Calls `use(graph)` with the child graph for a record's copy. The driver clones the graph.
template <class R, class Use>
CUresult with_child(const DecodedRequest<R>& t, const CUDA_HOST_NODE_PARAMS& function, Use use) {
  CUresult result = CUDA_SUCCESS;
  CUgraph const child =
      PageableNode::make(t.driver(), function, copy_of(t), context_of(t.request), t.record.to_device != 0, result);
  if (child == nullptr) return result;
  result = use(child);
  t.driver().cuGraphDestroy(child);
  return result;
}

// The state of a stream's capture.
struct Front {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t number = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  std::size_t count = 0;
};

}  // namespace

// Adds the node as the driver adds its own nodes: after the stream's dependencies, which the node replaces.
CUresult capture_pageable(call_of::capture_pageable& a) {
  const Driver& driver = a.driver();
  const CUstream stream =
      Captures::in_thread(a.handle<CUstream>(&api::CopyTexelsRecord::stream), a.request.per_thread());
  const auto beside = a.session().making();
  Front front;
  CUresult result = driver.cuStreamGetCaptureInfo_v3(stream, &front.status, &front.number, &front.graph, &front.nodes,
                                                     &front.edges, &front.count);
  if (result == CUDA_SUCCESS && front.status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (result != CUDA_SUCCESS) {
    forget_token(a.session(), a.record.token);
    return result;
  }
  const auto give = [&](const CUDA_HOST_NODE_PARAMS* function) {
    return with_child(a, *function, [&](CUgraph child) {
      CUgraphNode node = nullptr;
      const std::vector<CUgraphNode> before(front.nodes, front.nodes + front.count);
      const std::vector<CUgraphEdgeData> edges(front.edges,
                                               front.edges == nullptr ? nullptr : front.edges + front.count);
      CUresult added = driver.cuGraphAddChildGraphNode(&node, front.graph, nullptr, 0, child);
      const std::vector<CUgraphNode> behind(before.size(), node);
      if (added == CUDA_SUCCESS && !before.empty())
        added = driver.cuGraphAddDependencies_v2(front.graph, before.data(), behind.data(),
                                                 edges.empty() ? nullptr : edges.data(), before.size());
      if (added != CUDA_SUCCESS) return added;
      return driver.cuStreamUpdateCaptureDependencies_v2(stream, &node, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    });
  };
  return give_function(a.request, a.record.token, front.graph, give, true);
}

CUresult add_pageable(call_of::add_pageable& a) {
  using R = api::AddPageableRecord;
  const auto beside = a.session().making();
  if (!a.session().may_make_another()) {
    forget_token(a.session(), a.record.token);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  CUgraphNode node = nullptr;
  const auto graph = a.handle<CUgraph>(&R::graph);
  const auto* const nodes = reinterpret_cast<const CUgraphNode*>(a.behind(&R::dependencies));
  const auto give = [&](const CUDA_HOST_NODE_PARAMS* function) {
    return with_child(a, *function, [&](CUgraph child) {
      return a.driver().cuGraphAddChildGraphNode(&node, graph, nodes, a.record.dependencies, child);
    });
  };
  const CUresult result = give_function(a.request, a.record.token, graph, give, true);
  return result == CUDA_SUCCESS ? a.answer(result, {.node = found_node(a.request, node, a.record.graph)}) : result;
}

// A copy in the opposite direction would need a different node. The driver refuses such a change as well.
CUresult set_pageable(call_of::set_pageable& a) {
  const auto node = a.handle<CUgraphNode>(&api::SetPageableRecord::node);
  const auto found = PageableNode::of(a.driver(), node);
  if (!found || found->to_device != (a.record.to_device != 0)) {
    forget_token(a.session(), a.record.token);
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUDA_MEMCPY3D copy = copy_of(a);
  const auto give = [&](const CUDA_HOST_NODE_PARAMS* function) {
    const CUresult set = a.driver().cuGraphMemcpyNodeSetParams(found->copy, &copy);
    return set == CUDA_SUCCESS ? a.driver().cuGraphHostNodeSetParams(found->function, function) : set;
  };
  return give_function(a.request, a.record.token, graph_of(a.request, a.record.node), give, true);
}

CUresult exec_set_pageable(call_of::exec_set_pageable& a) {
  using R = api::ExecPageableRecord;
  const auto node = a.handle<CUgraphNode>(&R::node);
  const auto found = PageableNode::of(a.driver(), node);
  // In an executable graph the driver changes only copies of one row.
  const bool is_row = a.record.height == 1 && a.record.depth == 1;
  if (!found || !is_row || found->to_device != (a.record.to_device != 0)) {
    forget_token(a.session(), a.record.token);
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto give = [&](const CUDA_HOST_NODE_PARAMS* function) {
    return with_child(a, *function, [&](CUgraph child) {
      return a.driver().cuGraphExecChildGraphNodeSetParams(a.handle<CUgraphExec>(&R::exec), node, child);
    });
  };
  return give_function(a.request, a.record.token, nullptr, give, true);
}

}  // namespace host::calls
