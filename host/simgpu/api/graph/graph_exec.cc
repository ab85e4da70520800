// Executable graphs: calls that instantiate, launch and destroy them, and that enable and disable their nodes.
#include "host/simgpu/api/graph/graph_exec.h"

#include <cstring>

#include "host/simgpu/api/graph/capture.h"
#include "host/simgpu/api/graph/condition.h"
#include "host/simgpu/api/graph/graph_calls.h"
#include "host/simgpu/api/stream/streams.h"
#include "ring/base/mutex.h"

namespace simgpu {
namespace {

template <class F>
void each_node(const Graph& graph, F&& call) {
  for (const std::shared_ptr<GraphNode>& node : graph.nodes) {
    call(*node);
    if (const auto* child = std::get_if<ChildWork>(&node->work); child != nullptr) each_node(*child->graph, call);
    if (const auto* conditional = std::get_if<ConditionalWork>(&node->work); conditional != nullptr)
      for (const std::shared_ptr<Graph>& body : conditional->bodies) each_node(*body, call);
  }
}

}  // namespace

GraphNode* counterpart_of(Driver& driver, const GraphExec& exec, CUgraphNode original) {
  const std::shared_ptr<GraphNode> node = driver.graph_nodes.find(original);
  if (node == nullptr) return nullptr;
  const auto at = exec.by_original.find(node->id);
  return at == exec.by_original.end() || at->second->work.index() != node->work.index() ? nullptr : at->second;
}

}  // namespace simgpu

using namespace simgpu;

namespace {

constexpr std::uint64_t known_instantiate_flags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
    CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

bool are_instantiate_flags(std::uint64_t flags) {
  constexpr std::uint64_t not_together =
      CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
  return (flags & ~known_instantiate_flags) == 0 && (flags & not_together) != not_together;
}

// The reason why a graph cannot be instantiated.
struct Objection {
  CUresult code = CUDA_SUCCESS;
  CUgraphInstantiateResult why = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  GraphNode* node = nullptr;
};

bool can_be_launched_by_devices(const NodeWork& work) {
  return std::holds_alternative<KernelWork>(work) || std::holds_alternative<CopyWork>(work) ||
         std::holds_alternative<FillWork>(work) || std::holds_alternative<ChildWork>(work);
}

// Returns the first node of a type that the body of a conditional node must not contain; null if there is none.
GraphNode* forbidden_in_body(const Graph& graph, bool in_body) {
  for (const std::shared_ptr<GraphNode>& node : graph.nodes) {
    const auto* child = std::get_if<ChildWork>(&node->work);
    const auto* conditional = std::get_if<ConditionalWork>(&node->work);
    const bool allowed =
        can_be_launched_by_devices(node->work) || conditional != nullptr || std::holds_alternative<NoWork>(node->work);
    if (in_body && !allowed) return node.get();
    GraphNode* found = child == nullptr ? nullptr : forbidden_in_body(*child->graph, in_body);
    if (conditional != nullptr)
      for (const std::shared_ptr<Graph>& body : conditional->bodies)
        if (found == nullptr) found = forbidden_in_body(*body, true);
    if (found != nullptr) return found;
  }
  return nullptr;
}

// Returns a node of a graph that has a cycle, among this graph and its nested graphs; null if there is no cycle.
GraphNode* node_of_cycle(const Graph& graph) {
  if (in_order(graph).size() != graph.nodes.size()) return graph.nodes.front().get();
  GraphNode* found = nullptr;
  for (const std::shared_ptr<GraphNode>& node : graph.nodes) {
    if (const auto* child = std::get_if<ChildWork>(&node->work); found == nullptr && child != nullptr)
      found = node_of_cycle(*child->graph);
    if (const auto* conditional = std::get_if<ConditionalWork>(&node->work); conditional != nullptr)
      for (const std::shared_ptr<Graph>& body : conditional->bodies)
        if (found == nullptr) found = node_of_cycle(*body);
  }
  return found;
}

// Checks a graph before instantiation. For launches by the device, a host node counts as a node of another context.
Objection look_at_graph(Driver& driver, const Graph& graph, std::uint64_t flags) {
  constexpr auto structure = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
  if (graph.moved) return {CUDA_ERROR_INVALID_VALUE, CUDA_GRAPH_INSTANTIATE_ERROR, nullptr};
  if (GraphNode* const node = node_of_cycle(graph); node != nullptr) return {CUDA_ERROR_INVALID_VALUE, structure, node};
  if (has_conditions(graph) && !graph.exec.expired())
    return {CUDA_ERROR_INVALID_VALUE, CUDA_GRAPH_INSTANTIATE_ERROR, nullptr};
  if (GraphNode* const node = forbidden_in_body(graph, false); node != nullptr)
    return {CUDA_ERROR_INVALID_VALUE, structure, node};
  for (const std::shared_ptr<Condition>& condition : graph.conditions)
    if (!condition->has_node)
      return {CUDA_ERROR_INVALID_VALUE, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, nullptr};
  Objection found;
  each_node(graph, [&](GraphNode& node) {
    if (found.code != CUDA_SUCCESS) return;
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0 && !can_be_launched_by_devices(node.work))
      found = {CUDA_ERROR_INVALID_VALUE, CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED, &node};
    const auto* kernel = std::get_if<KernelWork>(&node.work);
    const auto* fill = std::get_if<FillWork>(&node.work);
    const CUresult error = kernel != nullptr ? check_kernel_work(*kernel)
                           : fill != nullptr ? check_fill_work(driver, *fill)
                                             : CUDA_SUCCESS;
    if (error != CUDA_SUCCESS) found = {error, CUDA_GRAPH_INSTANTIATE_ERROR, &node};
  });
  return found;
}

CUresult instantiate_now(Driver& driver, CUgraphExec* out, Graph& graph, std::uint64_t flags, Objection& objection) {
  objection = {CUDA_ERROR_INVALID_VALUE, CUDA_GRAPH_INSTANTIATE_ERROR, nullptr};
  if (out == nullptr || !are_instantiate_flags(flags)) return objection.code;
  objection = look_at_graph(driver, graph, flags);
  if (objection.code != CUDA_SUCCESS) return objection.code;
  const auto exec = std::make_shared<GraphExec>();
  exec->flags = flags & ~std::uint64_t{CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY};
  exec->graph = clone(driver, graph);
  each_node(*exec->graph, [&](GraphNode& node) { exec->by_original[node.original] = &node; });
  exec->handle = driver.graph_execs.insert(exec);
  graph.exec = exec;
  *out = exec->handle;
  return CUDA_SUCCESS;
}

// Wraps a call that instantiates a graph, which needs a current context.
template <class F>
CUresult with_graph_in_context(CUgraph handle, F&& call) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  return with_context([&](Driver&, Context&) { return with_graph(handle, call); });
}

// The calls that use this function take no stream, which an upload needs, so the upload flag is refused.
CUresult instantiate(CUgraphExec* out, CUgraph handle, std::uint64_t flags) {
  return with_graph_in_context(handle, [&](Driver& driver, Graph& graph) {
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) return CUDA_ERROR_INVALID_VALUE;
    Objection objection;
    return instantiate_now(driver, out, graph, flags, objection);
  });
}

// The calls of CUDA 11 and older. On failure they report no node and an empty log.
CUresult instantiate_with_log(CUgraphExec* out, CUgraph handle, CUgraphNode* error_node, char* log,
                              std::size_t log_size) {
  return with_graph_in_context(handle, [&](Driver& driver, Graph& graph) {
    Objection objection;
    const CUresult result = instantiate_now(driver, out, graph, 0, objection);
    if (error_node != nullptr) *error_node = nullptr;
    if (log != nullptr && log_size != 0) *log = '\0';
    return result;
  });
}

// Assigns the default values of the conditions when the launch begins executing, not when it is submitted.
Ticket assign_defaults(Driver& driver, const Graph& graph, const Ticket& begin) {
  std::vector<std::shared_ptr<Condition>> conditions;
  each_node(graph, [&](const GraphNode& node) {
    const auto* conditional = std::get_if<ConditionalWork>(&node.work);
    if (conditional != nullptr && conditional->condition->assigns_default) conditions.push_back(conditional->condition);
  });
  if (conditions.empty()) return begin;
  const auto assign = [conditions] {
    for (const std::shared_ptr<Condition>& condition : conditions)
      condition->value.store(condition->default_value, std::memory_order_release);
  };
  return driver.schedule.submit(assign, {begin}, Schedule::Who::Pool);
}

// Submits a launch, which waits for the previous launch of the same executable graph and holds the user objects until
// it is done.
Ticket put_launch(Driver& driver, Stream& stream, GraphExec& exec, const LaunchPlan& plan) {
  EventRecords records;
  const auto submit = [&](const Ticket& begin) {
    const Ticket end = submit_plan(driver, plan, assign_defaults(driver, *exec.graph, begin), records);
    if (exec.graph->users.empty()) return end;
    return driver.schedule.submit([users = exec.graph->users] {}, {end}, Schedule::Who::Pool);
  };
  exec.last = post_pieces(driver, stream, {exec.last}, submit);
  for (const auto& [event, ticket] : records) {
    const ring::MutexLock lock(event->mutex);
    event->record = ticket;
    event->captured = nullptr;
  }
  return exec.last;
}

// Wraps a call that launches or uploads an executable graph.
template <class F>
CUresult with_exec_in_stream(CUgraphExec exec_handle, CUstream stream_handle, F&& call) {
  return with_context_of(stream_handle, [&](Driver& driver, Context& context) {
    const ring::RecursiveLock lock(driver.graph_mutex);
    const std::shared_ptr<GraphExec> exec = driver.graph_execs.find(exec_handle);
    const std::shared_ptr<Stream> stream = stream_of(driver, context, stream_handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return exec == nullptr ? CUDA_ERROR_INVALID_VALUE : call(driver, *stream, *exec);
  });
}

bool can_be_disabled(const NodeWork& work) {
  return std::holds_alternative<KernelWork>(work) || std::holds_alternative<CopyWork>(work) ||
         std::holds_alternative<FillWork>(work);
}

}  // namespace

CUresult cuGraphInstantiate(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode, char* logBuffer,
                            std::size_t bufferSize) {
  return instantiate_with_log(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}
CUresult cuGraphInstantiate_v2(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode, char* logBuffer,
                               std::size_t bufferSize) {
  return instantiate_with_log(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* phGraphExec, CUgraph hGraph, unsigned long long flags) {
  return instantiate(phGraphExec, hGraph, flags);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams) {
  if (instantiateParams == nullptr)
    return with_graph_in_context(hGraph, [](Driver&, Graph&) { return CUDA_ERROR_INVALID_VALUE; });
  const CUresult result = with_graph_in_context(hGraph, [&](Driver& driver, Graph& graph) {
    Objection objection;
    const CUresult made = instantiate_now(driver, phGraphExec, graph, instantiateParams->flags, objection);
    instantiateParams->result_out = objection.why;
    instantiateParams->hErrNode_out = objection.node == nullptr ? nullptr : handle_of(driver, *objection.node);
    return made;
  });
  if (result != CUDA_SUCCESS || (instantiateParams->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) == 0) return result;
  return cuGraphUpload(*phGraphExec, instantiateParams->hUploadStream);
}
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* phGraphExec, CUgraph hGraph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams) {
  if (instantiateParams == nullptr) return cuGraphInstantiateWithParams(phGraphExec, hGraph, nullptr);
  const CUstream stream = instantiateParams->hUploadStream;
  instantiateParams->hUploadStream = own(stream);
  const CUresult result = cuGraphInstantiateWithParams(phGraphExec, hGraph, instantiateParams);
  instantiateParams->hUploadStream = stream;
  return result;
}

CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t* flags) {
  return with_exec(hGraphExec, [&](Driver&, const GraphExec& exec) {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = exec.flags;
    return CUDA_SUCCESS;
  });
}

// Destroying the executable graph does not affect launches in flight.
CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  return with_exec(hGraphExec, [&](Driver& driver, const GraphExec&) {
    driver.graph_execs.remove(hGraphExec);
    return CUDA_SUCCESS;
  });
}

// Uploads nothing. The call is only ordered in the stream and after the previous launch.
CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream) {
  return with_exec_in_stream(hGraphExec, hStream, [](Driver& driver, Stream& stream, GraphExec& exec) {
    exec.last = post(driver, stream, {}, Run::UnlessFailed, {exec.last});
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphUpload_ptsz(CUgraphExec hGraphExec, CUstream hStream) {
  return cuGraphUpload(hGraphExec, own(hStream));
}

CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream) {
  Ticket launched;
  const auto launch = [&](Driver& driver, Stream& stream, GraphExec& exec) {
    if (const CUresult error = refuse_in_capture(driver, stream); error != CUDA_SUCCESS) return error;
    std::shared_ptr<const LaunchPlan> plan;
    if (const CUresult error = make_plan(driver, *exec.graph, plan); error != CUDA_SUCCESS) return error;
    launched = put_launch(driver, stream, exec, *plan);
    return CUDA_SUCCESS;
  };
  const CUresult result = with_exec_in_stream(hGraphExec, hStream, launch);
  if (launched == nullptr) return result;
  return with_driver([&](Driver& driver) { return driver.launch_blocking ? wait_for(driver, {launched}) : result; });
}
CUresult cuGraphLaunch_ptsz(CUgraphExec hGraphExec, CUstream hStream) {
  return cuGraphLaunch(hGraphExec, own(hStream));
}

CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned isEnabled) {
  return with_exec(hGraphExec, [&](Driver& driver, const GraphExec& exec) {
    GraphNode* const node = counterpart_of(driver, exec, hNode);
    if (node == nullptr || !can_be_disabled(node->work)) return CUDA_ERROR_INVALID_VALUE;
    node->enabled = isEnabled != 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned* isEnabled) {
  return with_exec(hGraphExec, [&](Driver& driver, const GraphExec& exec) {
    const GraphNode* const node = counterpart_of(driver, exec, hNode);
    if (isEnabled == nullptr || node == nullptr || !can_be_disabled(node->work)) return CUDA_ERROR_INVALID_VALUE;
    *isEnabled = node->enabled ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

// The simulation has no allocation nodes, so graphs own no memory to trim.
CUresult cuDeviceGraphMemTrim(CUdevice device) {
  return with_driver(
      [&](Driver& driver) { return driver.device(device) == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS; });
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value) {
  return with_driver([&](Driver& driver) {
    if (driver.device(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const bool is_known = attr >= CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT && attr <= CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
    if (!is_known || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    constexpr cuuint64_t none = 0;
    std::memcpy(value, &none, sizeof none);
    return CUDA_SUCCESS;
  });
}

// A program may only reset the two high-water marks.
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value) {
  return with_driver([&](Driver& driver) {
    if (driver.device(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const bool is_high = attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
    if (!is_high || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    cuuint64_t wanted = 0;
    std::memcpy(&wanted, value, sizeof wanted);
    return wanted == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
