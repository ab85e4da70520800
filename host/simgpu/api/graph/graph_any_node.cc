// Creates nodes of any type from a CUgraphNodeParams.
#include "host/simgpu/api/graph/graph.h"

#include <algorithm>
#include <iterator>

#include "host/simgpu/api/context/context.h"
#include "host/simgpu/api/graph/condition.h"
#include "host/simgpu/api/graph/graph_calls.h"

namespace simgpu {
namespace {

CUDA_KERNEL_NODE_PARAMS_v2 kernel_params(const CUDA_KERNEL_NODE_PARAMS_v3& p) {
  return {.func = p.func,
          .gridDimX = p.gridDimX,
          .gridDimY = p.gridDimY,
          .gridDimZ = p.gridDimZ,
          .blockDimX = p.blockDimX,
          .blockDimY = p.blockDimY,
          .blockDimZ = p.blockDimZ,
          .sharedMemBytes = p.sharedMemBytes,
          .kernelParams = p.kernelParams,
          .extra = p.extra,
          .kern = p.kern,
          .ctx = p.ctx};
}

CUDA_MEMSET_NODE_PARAMS_v1 fill_params(const CUDA_MEMSET_NODE_PARAMS_v2& p) {
  return {.dst = p.dst,
          .pitch = p.pitch,
          .value = p.value,
          .elementSize = p.elementSize,
          .width = p.width,
          .height = p.height};
}

CUresult make_child(Driver& driver, const CUDA_CHILD_GRAPH_NODE_PARAMS& params, ChildWork& out) {
  const std::shared_ptr<Graph> child = driver.graphs.find(params.graph);
  if (child == nullptr || child->moved) return CUDA_ERROR_INVALID_VALUE;
  // every other number, even an unknown one, clones the graph
  if (params.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
    if (has_conditions(*child)) return CUDA_ERROR_NOT_SUPPORTED;
    out.graph = clone(driver, *child);
    return CUDA_SUCCESS;
  }
  if (child->inside != nullptr) return CUDA_ERROR_INVALID_VALUE;
  child->moved = true;
  out.graph = child;
  return CUDA_SUCCESS;
}

template <class Work>
CUresult make_event_work(Driver& driver, CUevent handle, NodeWork& out) {
  const std::shared_ptr<Event> event = driver.events.find(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
  out = Work{event};
  return CUDA_SUCCESS;
}

// Selects the context that the parameters name, or else the context of the existing node.
CUresult context_for(Driver& driver, CUcontext named, const NodeWork& standing, std::shared_ptr<Context>& out) {
  if (named == nullptr) {
    if (const auto* copy = std::get_if<CopyWork>(&standing); copy != nullptr) out = copy->context;
    if (const auto* fill = std::get_if<FillWork>(&standing); fill != nullptr) out = fill->context;
  }
  return out != nullptr ? CUDA_SUCCESS : find_node_context(driver, named, out);
}

bool is_sound(const CUgraphNodeParams& params) {
  const bool zero = std::all_of(std::begin(params.reserved0), std::end(params.reserved0), [](int n) { return n == 0; });
  return zero && params.reserved2 == 0;
}

}  // namespace

CUresult make_any_work(Driver& driver, const CUgraphNodeParams& params, NodeWork& out) {
  if (!is_sound(params)) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Context> context;
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      KernelWork made;
      if (const auto* standing = std::get_if<KernelWork>(&out); standing != nullptr)
        made.attributes = standing->attributes;
      const CUresult error = make_kernel_work(driver, kernel_params(params.kernel), made);
      if (error == CUDA_SUCCESS) out = std::move(made);
      return error;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
      CopyWork made;
      if (params.memcpy.flags != 0 || params.memcpy.reserved != 0) return CUDA_ERROR_INVALID_VALUE;
      CUresult error = context_for(driver, params.memcpy.copyCtx, out, context);
      if (error == CUDA_SUCCESS) error = make_copy_work(driver, params.memcpy.copyParams, context, made);
      if (error == CUDA_SUCCESS) out = made;
      return error;
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      FillWork made;
      CUresult error = context_for(driver, params.memset.ctx, out, context);
      if (error == CUDA_SUCCESS) error = make_fill_work(driver, fill_params(params.memset), context, made);
      if (error == CUDA_SUCCESS) out = made;
      return error;
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      if (params.host.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
      out = HostWork{params.host.fn, params.host.userData};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH: return make_child(driver, params.graph, out.emplace<ChildWork>());
    case CU_GRAPH_NODE_TYPE_EMPTY: out = NoWork{}; return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return make_event_work<EventWait>(driver, params.eventWait.event, out);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return make_event_work<EventRecord>(driver, params.eventRecord.event, out);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult change_work(Driver& driver, const CUgraphNodeParams& params, NodeWork& work) {
  if (params.type != type_of(work) || params.type == CU_GRAPH_NODE_TYPE_GRAPH) return CUDA_ERROR_INVALID_VALUE;
  if (params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) return CUDA_ERROR_NOT_SUPPORTED;
  return make_any_work(driver, params, work);
}

}  // namespace simgpu

using namespace simgpu;

namespace {

bool has_condition(const Graph& graph, const Condition& wanted) {
  for (const Graph* at = &graph; at != nullptr; at = at->inside == nullptr ? nullptr : at->inside->graph)
    for (const std::shared_ptr<Condition>& condition : at->conditions)
      if (condition.get() == &wanted) return true;
  return false;
}

// Creates the body graphs. Within a graph and its nested graphs, only one node may use the condition. As in the driver,
// nodes of other graphs do not count.
CUresult make_conditional(Driver& driver, const Graph& graph, CUDA_CONDITIONAL_NODE_PARAMS& params,
                          ConditionalWork& out) {
  const bool known = params.type >= CU_GRAPH_COND_TYPE_IF && params.type <= CU_GRAPH_COND_TYPE_SWITCH;
  const unsigned most = params.type == CU_GRAPH_COND_TYPE_WHILE ? 1 : params.type == CU_GRAPH_COND_TYPE_IF ? 2 : ~0U;
  if (!known || params.size == 0 || params.size > most) return CUDA_ERROR_INVALID_VALUE;
  out.condition = condition_of(params.handle);
  if (out.condition == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool own = has_condition(graph, *out.condition);
  if (own && out.condition->has_node) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = CUDA_SUCCESS;
  out.context = context_named(driver, params.ctx, &error);
  if (out.context == nullptr) return error;
  if (out.context != out.condition->context) return CUDA_ERROR_INVALID_VALUE;
  out.type = params.type;
  for (unsigned i = 0; i < params.size; ++i) {
    out.bodies.push_back(make_graph(driver));
    out.handles.push_back(handle_of(driver, out.bodies.back()));
  }
  if (own) out.condition->has_node = true;
  return CUDA_SUCCESS;
}

// Returns true if `graph` is `outer` or is nested in it at any depth.
bool is_in(const Graph& graph, const Graph* outer) {
  for (const Graph* at = &graph; at != nullptr; at = at->inside == nullptr ? nullptr : at->inside->graph)
    if (at == outer) return true;
  return false;
}

CUresult add_any(CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, const CUgraphEdgeData* data,
                 std::size_t count, CUgraphNodeParams* params) {
  if (params == nullptr || params->type != CU_GRAPH_NODE_TYPE_CONDITIONAL)
    return add_node(out, handle, dependencies, data, count, [&](Driver& driver, Graph& graph, NodeWork& work) {
      if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
      const bool moves =
          params->type == CU_GRAPH_NODE_TYPE_GRAPH && params->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
      if (moves && is_in(graph, driver.graphs.find(params->graph.graph).get())) return CUDA_ERROR_INVALID_VALUE;
      return make_any_work(driver, *params, work);
    });
  const CUresult added =
      add_node(out, handle, dependencies, data, count, [&](Driver& driver, Graph& graph, NodeWork& work) {
        return make_conditional(driver, graph, params->conditional, work.emplace<ConditionalWork>());
      });
  if (added != CUDA_SUCCESS) return added;
  return with_node_of<ConditionalWork>(*out, [&](Driver&, GraphNode&, ConditionalWork& work) {
    params->conditional.phGraph_out = work.handles.data();
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuGraphAddNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                        std::size_t numDependencies, CUgraphNodeParams* nodeParams) {
  return add_any(phGraphNode, hGraph, dependencies, nullptr, numDependencies, nodeParams);
}
CUresult cuGraphAddNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* dependencyData, std::size_t numDependencies,
                           CUgraphNodeParams* nodeParams) {
  return add_any(phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams);
}

CUresult cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams* nodeParams) {
  return with_node(hNode, [&](Driver& driver, GraphNode& node) {
    return nodeParams == nullptr ? CUDA_ERROR_INVALID_VALUE : change_work(driver, *nodeParams, node.work);
  });
}
