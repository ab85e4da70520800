// Conditional nodes, and the calls for nodes of any kind. A call for any kind delegates to the call for the node's
// kind.
#include "guest/calls/calls.h"
#include "guest/calls/graph/nodes.h"
#include "guest/calls/stub.h"

namespace guest::calls {
namespace {

KeptArrays<std::vector<CUgraph>>& bodies_of_nodes() {
  static auto* const kept = new KeptArrays<std::vector<CUgraph>>;
  return *kept;
}

CUresult add_conditional(CUgraphNode* out, CUgraph graph, const Dependencies& dependencies,
                         CUDA_CONDITIONAL_NODE_PARAMS& p) {
  Context* context = nullptr;
  if (const CUresult r = enter_for(p.ctx, context); r != CUDA_SUCCESS) return r;
  Object* const object = graph_object(graph);
  if (out == nullptr || object == nullptr || !dependencies.known()) return CUDA_ERROR_INVALID_VALUE;
  const api::AddConditionalNodeRecord record{.graph = api::number_of(graph),
                                             .dependencies = dependencies.count,
                                             .handle = p.handle,
                                             .type = static_cast<std::uint32_t>(p.type),
                                             .bodies = p.size};
  api::ConditionalNodeReply reply{};
  std::vector<std::uint64_t> bodies;
  const auto read = [&](CUresult result, ring::SharedReader& r) {
    if (result != CUDA_SUCCESS) return;
    reply = r.read<api::ConditionalNodeReply>();
    for (std::uint64_t i = 0; r.ok() && i < reply.bytes / sizeof(std::uint64_t); ++i) bodies.push_back(r.slot());
  };
  const Part behind = dependencies.part();
  const Sent sent = cross({.call = api::id_of::cuGraphAddNode_v2, .context = *context}, record, {&behind, 1}, read);
  if (sent.result != CUDA_SUCCESS) return sent.result;
  Object* const node = found_node(reply.node, object);
  if (node == nullptr) return lose_to_unsound_reply();
  std::vector<CUgraph>& kept = bodies_of_nodes().renew(*node);
  for (const std::uint64_t id : bodies) {
    Object* const body = found_graph(id);
    if (body == nullptr) return lose_to_unsound_reply();
    if (body->owner == 0) session()->objects.give(*body, *node);
    kept.push_back(reinterpret_cast<CUgraph>(id));
  }
  p.phGraph_out = kept.data();
  *out = reinterpret_cast<CUgraphNode>(reply.node);
  return CUDA_SUCCESS;
}

// Adds the node by the call for the node's kind.
CUresult add_node(CUgraphNode* out, CUgraph graph, const Dependencies& d, CUgraphNodeParams& p) {
  switch (p.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const auto kernel = first_of<CUDA_KERNEL_NODE_PARAMS_v2>(p.kernel);
      return calls::cuGraphAddKernelNode_v2(out, graph, d.nodes, d.count, &kernel);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      if (p.memcpy.flags != 0 || p.memcpy.reserved != 0) return CUDA_ERROR_INVALID_VALUE;
      return calls::cuGraphAddMemcpyNode(out, graph, d.nodes, d.count, &p.memcpy.copyParams, p.memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const auto fill = first_of<CUDA_MEMSET_NODE_PARAMS>(p.memset);
      return Stub<api::id_of::cuGraphAddMemsetNode>::call(out, graph, d.nodes, d.count, &fill, p.memset.ctx);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      const auto host = first_of<CUDA_HOST_NODE_PARAMS>(p.host);
      return calls::cuGraphAddHostNode(out, graph, d.nodes, d.count, &host);
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
      if (p.graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) return CUDA_ERROR_NOT_SUPPORTED;
      return Stub<api::id_of::cuGraphAddChildGraphNode>::call(out, graph, d.nodes, d.count, p.graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY: return Stub<api::id_of::cuGraphAddEmptyNode>::call(out, graph, d.nodes, d.count);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return Stub<api::id_of::cuGraphAddEventWaitNode>::call(out, graph, d.nodes, d.count, p.eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return Stub<api::id_of::cuGraphAddEventRecordNode>::call(out, graph, d.nodes, d.count, p.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return add_conditional(out, graph, d, p.conditional);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

bool is_padded_with_zeros(const CUgraphNodeParams& p) {
  return p.reserved0[0] == 0 && p.reserved0[1] == 0 && p.reserved0[2] == 0 && p.reserved2 == 0;
}

}  // namespace

// A call that adds a node takes no edge data, so edges with data are added after the node.
CUresult cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* nodes, const CUgraphEdgeData* edges,
                           std::size_t count, CUgraphNodeParams* p) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (p == nullptr || out == nullptr || !is_padded_with_zeros(*p)) return CUDA_ERROR_INVALID_VALUE;
  bool are_usual = true;
  for (std::size_t i = 0; edges != nullptr && i < count; ++i) are_usual = are_usual && !has_data(edges[i]);
  if (are_usual) return add_node(out, graph, {nodes, count}, *p);
  if (const CUresult r = add_node(out, graph, {nullptr, 0}, *p); r != CUDA_SUCCESS) return r;
  const std::vector<CUgraphNode> to(count, *out);
  const CUresult result = Stub<api::id_of::cuGraphAddDependencies_v2>::call(graph, nodes, to.data(), edges, count);
  if (result != CUDA_SUCCESS) Stub<api::id_of::cuGraphDestroyNode>::call(*out);
  return result;
}

CUresult cuGraphAddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* nodes, std::size_t count,
                        CUgraphNodeParams* p) {
  return calls::cuGraphAddNode_v2(out, graph, nodes, nullptr, count, p);
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* p) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (p == nullptr || !is_padded_with_zeros(*p)) return CUDA_ERROR_INVALID_VALUE;
  switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const auto kernel = first_of<CUDA_KERNEL_NODE_PARAMS_v2>(p->kernel);
      return calls::cuGraphKernelNodeSetParams_v2(node, &kernel);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: return calls::cuGraphMemcpyNodeSetParams(node, &p->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const auto fill = first_of<CUDA_MEMSET_NODE_PARAMS>(p->memset);
      return Stub<api::id_of::cuGraphMemsetNodeSetParams>::call(node, &fill);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      const auto host = first_of<CUDA_HOST_NODE_PARAMS>(p->host);
      return calls::cuGraphHostNodeSetParams(node, &host);
    }
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return Stub<api::id_of::cuGraphEventWaitNodeSetEvent>::call(node, p->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return Stub<api::id_of::cuGraphEventRecordNodeSetEvent>::call(node, p->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* p) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (p == nullptr || !is_padded_with_zeros(*p)) return CUDA_ERROR_INVALID_VALUE;
  switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const auto kernel = first_of<CUDA_KERNEL_NODE_PARAMS_v2>(p->kernel);
      return calls::cuGraphExecKernelNodeSetParams_v2(exec, node, &kernel);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return calls::cuGraphExecMemcpyNodeSetParams(exec, node, &p->memcpy.copyParams, p->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const auto fill = first_of<CUDA_MEMSET_NODE_PARAMS>(p->memset);
      return Stub<api::id_of::cuGraphExecMemsetNodeSetParams>::call(exec, node, &fill, p->memset.ctx);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      const auto host = first_of<CUDA_HOST_NODE_PARAMS>(p->host);
      return calls::cuGraphExecHostNodeSetParams(exec, node, &host);
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return Stub<api::id_of::cuGraphExecChildGraphNodeSetParams>::call(exec, node, p->graph.graph);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return Stub<api::id_of::cuGraphExecEventWaitNodeSetEvent>::call(exec, node, p->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return Stub<api::id_of::cuGraphExecEventRecordNodeSetEvent>::call(exec, node, p->eventRecord.event);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace guest::calls
