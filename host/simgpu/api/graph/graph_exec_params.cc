// Calls that change one node of an executable graph. A call identifies the node by its original, which stays unchanged.
#include "host/simgpu/api/graph/graph_calls.h"
#include "host/simgpu/api/graph/graph_exec.h"
#include "host/simgpu/api/graph/graph_update.h"

using namespace simgpu;

namespace {

// Changes the node's work: `make` modifies a copy of the old work.
template <class Work, class F>
CUresult change_node(CUgraphExec handle, CUgraphNode original, F&& make) {
  return with_exec(handle, [&](Driver& driver, const GraphExec& exec) {
    GraphNode* const node = counterpart_of(driver, exec, original);
    if (node == nullptr || !std::holds_alternative<Work>(node->work)) return CUDA_ERROR_INVALID_VALUE;
    NodeWork next = node->work;
    if (const CUresult error = make(driver, std::get<Work>(next)); error != CUDA_SUCCESS) return error;
    if (judge_change(driver, node->work, next) != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    node->work = std::move(next);
    return CUDA_SUCCESS;
  });
}

template <class Params>
CUresult change_kernel(CUgraphExec exec, CUgraphNode node, const Params* params) {
  return change_node<KernelWork>(exec, node, [&](Driver& driver, KernelWork& work) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : make_kernel_work(driver, widened(*params), work);
  });
}

bool is_one_row(const CUDA_MEMCPY3D& copy) { return copy.Height == 1 && copy.Depth == 1; }

template <class Work>
CUresult change_event(CUgraphExec exec, CUgraphNode node, CUevent handle) {
  return change_node<Work>(exec, node, [&](Driver& driver, Work& work) {
    work.event = driver.events.find(handle);
    return work.event == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return change_kernel(hGraphExec, hNode, nodeParams);
}
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_KERNEL_NODE_PARAMS_v2* nodeParams) {
  return change_kernel(hGraphExec, hNode, nodeParams);
}

// Like the driver, this call changes only copies of a single row.
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D* copyParams,
                                        CUcontext ctx) {
  return change_node<CopyWork>(hGraphExec, hNode, [&](Driver& driver, CopyWork& work) {
    if (copyParams == nullptr || !is_one_row(*copyParams) || !is_one_row(work.asked)) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Context> context;
    if (const CUresult error = find_node_context(driver, ctx, context); error != CUDA_SUCCESS) return error;
    return make_copy_work(driver, *copyParams, context, work);
  });
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext ctx) {
  return change_node<FillWork>(hGraphExec, hNode, [&](Driver& driver, FillWork& work) {
    if (memsetParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Context> context;
    if (const CUresult error = find_node_context(driver, ctx, context); error != CUDA_SUCCESS) return error;
    return make_fill_work(driver, *memsetParams, context, work);
  });
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                      const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return change_node<HostWork>(hGraphExec, hNode, [&](Driver&, HostWork& work) {
    if (nodeParams == nullptr || nodeParams->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    work = {nodeParams->fn, nodeParams->userData};
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph) {
  return with_exec(hGraphExec, [&](Driver& driver, const GraphExec& exec) {
    const GraphNode* const node = counterpart_of(driver, exec, hNode);
    const auto* child = node == nullptr ? nullptr : std::get_if<ChildWork>(&node->work);
    const std::shared_ptr<Graph> graph = driver.graphs.find(childGraph);
    if (child == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const UpdateResult result = update_graph(driver, *child->graph, *graph);
    return result.code == CU_GRAPH_EXEC_UPDATE_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  });
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event) {
  return change_event<EventRecord>(hGraphExec, hNode, event);
}
CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event) {
  return change_event<EventWait>(hGraphExec, hNode, event);
}

CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams* nodeParams) {
  if (nodeParams != nullptr && nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH)
    return cuGraphExecChildGraphNodeSetParams(hGraphExec, hNode, nodeParams->graph.graph);
  return with_exec(hGraphExec, [&](Driver& driver, const GraphExec& exec) {
    GraphNode* const node = counterpart_of(driver, exec, hNode);
    if (nodeParams == nullptr || node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    NodeWork next = node->work;
    if (const CUresult error = change_work(driver, *nodeParams, next); error != CUDA_SUCCESS) return error;
    if (judge_change(driver, node->work, next) != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    node->work = std::move(next);
    return CUDA_SUCCESS;
  });
}
