// Calls for copy, fill, host, child graph, empty, event record and event wait nodes.
#include "host/simgpu/api/graph/graph.h"

#include "host/simgpu/api/context/context.h"
#include "host/simgpu/api/graph/graph_calls.h"
#include "host/simgpu/api/memory/rows.h"

namespace simgpu {

CUresult find_node_context(Driver& driver, CUcontext handle, std::shared_ptr<Context>& out) {
  CUresult error = CUDA_SUCCESS;
  out = context_named(driver, handle, &error);
  return error;
}

CUresult make_copy_work(Driver& driver, const CUDA_MEMCPY3D& asked, const std::shared_ptr<Context>& context,
                        CopyWork& out) {
  Copy copy;
  Side to{}, from{};
  if (asked.WidthInBytes == 0 || asked.Height == 0 || asked.Depth == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = copy_of(driver, asked, copy, to, from); error != CUDA_SUCCESS) return error;
  ReadyCopy ready;
  if (const CUresult error = prepare_copy(driver, copy, to, from, ready); error != CUDA_SUCCESS) return error;
  out = {.context = context, .asked = asked};
  return CUDA_SUCCESS;
}

Fill fill_of(const CUDA_MEMSET_NODE_PARAMS_v1& asked) {
  return {.to = {.start = asked.dst, .pitch = asked.height > 1 ? asked.pitch : 0},
          .shape = {.width = asked.width * asked.elementSize, .height = asked.height},
          .pattern = asked.value,
          .pattern_size = asked.elementSize};
}

CUresult make_fill_work(Driver& driver, const CUDA_MEMSET_NODE_PARAMS_v1& asked,
                        const std::shared_ptr<Context>& context, FillWork& out) {
  const unsigned size = asked.elementSize;
  std::size_t width = 0;
  if ((size != 1 && size != 2 && size != 4) || asked.width == 0 || asked.height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (__builtin_mul_overflow(asked.width, std::size_t{size}, &width)) return CUDA_ERROR_INVALID_VALUE;
  if (asked.height > 1 && asked.pitch < width) return CUDA_ERROR_INVALID_VALUE;
  out = {.context = context, .asked = asked};
  return check_fill_work(driver, out);
}

CUresult check_fill_work(Driver& driver, const FillWork& work) {
  ReadyFill ready;
  return prepare_fill(driver, *work.context, fill_of(work.asked), ready);
}

}  // namespace simgpu

using namespace simgpu;

namespace {

template <class Work, class Params>
CUresult get_asked(CUgraphNode node, Params* params) {
  return with_node_of<Work>(node, [&](Driver&, GraphNode&, const Work& work) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *params = work.asked;
    return CUDA_SUCCESS;
  });
}

template <class Work>
CUresult get_event(CUgraphNode node, CUevent* out) {
  return with_node_of<Work>(node, [&](Driver&, GraphNode&, const Work& work) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = work.event->handle;
    return CUDA_SUCCESS;
  });
}

template <class Work>
CUresult set_event(CUgraphNode node, CUevent handle) {
  return with_node_of<Work>(node, [&](Driver& driver, GraphNode&, Work& work) {
    const std::shared_ptr<Event> event = driver.events.find(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
    work.event = event;
    return CUDA_SUCCESS;
  });
}

template <class Work>
CUresult add_event_node(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                        CUevent handle) {
  return add_node(out, graph, dependencies, nullptr, count, [&](Driver& driver, Graph&, NodeWork& work) {
    const std::shared_ptr<Event> event = driver.events.find(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
    work = Work{event};
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuGraphAddMemcpyNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                              std::size_t numDependencies, const CUDA_MEMCPY3D* copyParams, CUcontext ctx) {
  return add_node(phGraphNode, hGraph, dependencies, nullptr, numDependencies,
                  [&](Driver& driver, Graph&, NodeWork& work) {
                    std::shared_ptr<Context> context;
                    if (copyParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
                    if (const CUresult error = find_node_context(driver, ctx, context); error != CUDA_SUCCESS)
                      return error;
                    return make_copy_work(driver, *copyParams, context, work.emplace<CopyWork>());
                  });
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D* nodeParams) {
  return get_asked<CopyWork>(hNode, nodeParams);
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D* nodeParams) {
  return with_node_of<CopyWork>(hNode, [&](Driver& driver, GraphNode&, CopyWork& work) {
    if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return make_copy_work(driver, *nodeParams, std::shared_ptr(work.context), work);
  });
}

CUresult cuGraphAddMemsetNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                              std::size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext ctx) {
  return add_node(phGraphNode, hGraph, dependencies, nullptr, numDependencies,
                  [&](Driver& driver, Graph&, NodeWork& work) {
                    std::shared_ptr<Context> context;
                    if (memsetParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
                    if (const CUresult error = find_node_context(driver, ctx, context); error != CUDA_SUCCESS)
                      return error;
                    return make_fill_work(driver, *memsetParams, context, work.emplace<FillWork>());
                  });
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  return get_asked<FillWork>(hNode, nodeParams);
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  return with_node_of<FillWork>(hNode, [&](Driver& driver, GraphNode&, FillWork& work) {
    if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return make_fill_work(driver, *nodeParams, std::shared_ptr(work.context), work);
  });
}

CUresult cuGraphAddHostNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                            std::size_t numDependencies, const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return add_node(phGraphNode, hGraph, dependencies, nullptr, numDependencies, [&](Driver&, Graph&, NodeWork& work) {
    if (nodeParams == nullptr || nodeParams->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    work = HostWork{nodeParams->fn, nodeParams->userData};
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS* nodeParams) {
  return with_node_of<HostWork>(hNode, [&](Driver&, GraphNode&, const HostWork& work) {
    if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *nodeParams = {.fn = work.function, .userData = work.data};
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return with_node_of<HostWork>(hNode, [&](Driver&, GraphNode&, HostWork& work) {
    if (nodeParams == nullptr || nodeParams->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    work = {nodeParams->fn, nodeParams->userData};
    return CUDA_SUCCESS;
  });
}

// The node owns a copy of the graph. The copy has a handle of its own, through which the program can change it.
CUresult cuGraphAddChildGraphNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                                  std::size_t numDependencies, CUgraph childGraph) {
  return add_node(phGraphNode, hGraph, dependencies, nullptr, numDependencies,
                  [&](Driver& driver, Graph&, NodeWork& work) {
                    const std::shared_ptr<Graph> child = driver.graphs.find(childGraph);
                    if (child == nullptr || child->moved) return CUDA_ERROR_INVALID_VALUE;
                    if (has_conditions(*child)) return CUDA_ERROR_NOT_SUPPORTED;
                    work = ChildWork{clone(driver, *child)};
                    return CUDA_SUCCESS;
                  });
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph* phGraph) {
  return with_node_of<ChildWork>(hNode, [&](Driver& driver, GraphNode&, const ChildWork& work) {
    if (phGraph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *phGraph = handle_of(driver, work.graph);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphAddEmptyNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                             std::size_t numDependencies) {
  return add_node(phGraphNode, hGraph, dependencies, nullptr, numDependencies,
                  [](Driver&, Graph&, NodeWork&) { return CUDA_SUCCESS; });
}

CUresult cuGraphAddEventRecordNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                                   std::size_t numDependencies, CUevent event) {
  return add_event_node<EventRecord>(phGraphNode, hGraph, dependencies, numDependencies, event);
}
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent* event_out) {
  return get_event<EventRecord>(hNode, event_out);
}
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event) {
  return set_event<EventRecord>(hNode, event);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                                 std::size_t numDependencies, CUevent event) {
  return add_event_node<EventWait>(phGraphNode, hGraph, dependencies, numDependencies, event);
}
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent* event_out) {
  return get_event<EventWait>(hNode, event_out);
}
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event) { return set_event<EventWait>(hNode, event); }
