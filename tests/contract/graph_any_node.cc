// Cases for the calls that create nodes of any type, and for conditional nodes.
#include "tests/contract/graphs.h"

namespace contract {
namespace {

CUgraphNodeParams any(CUgraphNodeType type) {
  CUgraphNodeParams out;
  std::memset(&out, 0, sizeof out);
  out.type = type;
  return out;
}

CUgraphNodeParams any_kernel(CUfunction function, void** list = nullptr) {
  CUgraphNodeParams out = any(CU_GRAPH_NODE_TYPE_KERNEL);
  out.kernel.func = function;
  out.kernel.gridDimX = out.kernel.gridDimY = out.kernel.gridDimZ = 1;
  out.kernel.blockDimX = out.kernel.blockDimY = out.kernel.blockDimZ = 1;
  out.kernel.kernelParams = list;
  return out;
}

GROUP(any_nodes, InContext) {
  GraphWork work;
  Counter count = 0, other = 0;
  CUgraph graph = make_graph(), child = make_graph();
  StoreParameters parameters(work.a, 5);
  const auto add = CU(cuGraphAddNode_v2);
  std::vector<CUgraphNode> nodes;
  const auto good = [&](const std::string& what, CUgraphNodeParams params) {
    CUgraphNode node = nullptr;
    show(what, add(&node, graph, nodes.empty() ? nullptr : &nodes.back(), nullptr, nodes.empty() ? 0 : 1, &params));
    auto type = odd<CUgraphNodeType>(99);
    if (node != nullptr) CU(cuGraphNodeGetType)(node, &type);
    show(what + ", type", type);
    if (node != nullptr) nodes.push_back(node);
    return node;
  };
  good("empty", any(CU_GRAPH_NODE_TYPE_EMPTY));
  const CUgraphNode kernel = good("kernel", any_kernel(work.store, parameters.list));
  CUgraphNodeParams params = any(CU_GRAPH_NODE_TYPE_MEMCPY);
  params.memcpy.copyCtx = work.context;
  params.memcpy.copyParams = copy_of(work.a + 4, work.a, 4);
  good("copy", params);
  params.memcpy.flags = 1;
  good("copy, flags 1", params);
  params = any(CU_GRAPH_NODE_TYPE_MEMSET);
  params.memset.ctx = work.context;
  params.memset.dst = work.a + 8, params.memset.value = 7, params.memset.elementSize = 4;
  params.memset.width = params.memset.height = 1;
  good("fill", params);
  params = any(CU_GRAPH_NODE_TYPE_HOST);
  params.host.fn = count_call, params.host.userData = &count;
  const CUgraphNode host = good("host", params);
  params = any(CU_GRAPH_NODE_TYPE_GRAPH);
  params.graph.graph = child;
  good("child", params);
  params = any(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  params.eventRecord.event = work.event;
  good("record", params);
  params = any(CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  params.eventWait.event = work.event;
  good("wait", params);
  params = any(CU_GRAPH_NODE_TYPE_GRAPH);
  params.graph.graph = make_graph();
  params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
  good("moved child", params);
  params.graph.graph = child;
  params.graph.ownership = odd<CUgraphChildGraphNodeOwnership>(9);
  good("child of ownership 9", params);
  good("type 14", any(odd<CUgraphNodeType>(14)));
  good("type -1", any(odd<CUgraphNodeType>(-1)));
  params = any(CU_GRAPH_NODE_TYPE_EMPTY);
  params.reserved0[0] = 1;
  good("a reserved word", params);
  params = any(CU_GRAPH_NODE_TYPE_EMPTY);
  params.reserved2 = 1;
  good("the last reserved word", params);
  show("nodes", nodes_in(graph));
  params = any(CU_GRAPH_NODE_TYPE_HOST);
  params.host.fn = count_call, params.host.userData = &other;
  show("set", CU(cuGraphNodeSetParams)(host, &params));
  show("set of another kind", CU(cuGraphNodeSetParams)(kernel, &params));
  CUgraphExec exec = instantiated(graph);
  show_flag("an exec", exec != nullptr);
  StoreParameters changed(work.a, 6);
  params = any_kernel(work.store, changed.list);
  show("exec: set", CU(cuGraphExecNodeSetParams)(exec, kernel, &params));
  show("exec: set of another kind", CU(cuGraphExecNodeSetParams)(exec, host, &params));
  show("launch", CU(cuGraphLaunch)(exec, work.stream));
  show("wait", CU(cuStreamSynchronize)(work.stream));
  show("the kernel's word, copied", word_at(work.a + 4));
  show("the fill's word", word_at(work.a + 8));
  show("calls of the first", count);
  show("calls of the second", other);
  CUgraphNode node = nullptr;
  params = any(CU_GRAPH_NODE_TYPE_EMPTY);
  show("version 1", CU(cuGraphAddNode)(&node, graph, nullptr, 0, &params));
  show("without a place", add(nullptr, graph, nullptr, nullptr, 0, &params));
  show("in no graph", add(&node, nullptr, nullptr, nullptr, 0, &params));
  show("behind null", add(&node, graph, nullptr, nullptr, 1, &params));
  CUgraphEdgeData edge{};
  show("with an edge", add(&node, graph, nodes.data(), &edge, 1, &params));
  edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER;
  params = any_kernel(work.empty);
  show("a kernel behind a kernel's launch", add(&node, graph, &kernel, &edge, 1, &params));
  std::size_t n = 1;
  CUgraphNode before = nullptr;
  CUgraphEdgeData data{9, 9, 9, {}};
  show("its dependencies", CU(cuGraphNodeGetDependencies_v2)(node, &before, &data, &n));
  show("the port", data.from_port);
  show("the type", data.type);
  show("without data", CU(cuGraphNodeGetDependencies_v2)(node, &before, nullptr, &n));
  show("version 1", CU(cuGraphNodeGetDependencies)(node, &before, &n));
  n = 64;
  CUgraphNode from[64], to[64];
  show("edges by version 1", CU(cuGraphGetEdges)(graph, from, to, &n));
  show_guarded("nothing", [&] { return add(&node, graph, nullptr, nullptr, 0, nullptr); });
}

// Runs a graph with one conditional node, whose body stores a word, with the default value of the handle.
void show_conditional(const std::string& what, GraphWork& work, CUgraphConditionalNodeType type, unsigned size,
                      unsigned value, unsigned flags) {
  work.clear();
  CUgraph graph = make_graph();
  CUgraphConditionalHandle handle = 0;
  const CUresult made = CU(cuGraphConditionalHandleCreate)(&handle, graph, work.context, value, flags);
  show(what + ", handle", made);
  if (made != CUDA_SUCCESS) return;
  CUgraphNodeParams params = any(CU_GRAPH_NODE_TYPE_CONDITIONAL);
  params.conditional.handle = handle;
  params.conditional.type = type;
  params.conditional.size = size;
  params.conditional.ctx = work.context;
  CUgraphNode node = nullptr;
  const CUresult code = CU(cuGraphAddNode_v2)(&node, graph, nullptr, nullptr, 0, &params);
  show(what + ", node", code);
  if (code != CUDA_SUCCESS) return;
  show_flag(what + ", bodies", params.conditional.phGraph_out != nullptr);
  StoreParameters first(work.a, 5), second(work.a + 4, 6);
  add_kernel(params.conditional.phGraph_out[0], kernel_of(work.store, first.list));
  if (size > 1) add_kernel(params.conditional.phGraph_out[1], kernel_of(work.store, second.list));
  show(what + ", it runs", run_once(graph, work.stream));
  show(what + ", the first body's word", word_at(work.a));
  show(what + ", the second body's word", word_at(work.a + 4));
}

GROUP(conditional_nodes, InContext) {
  GraphWork work;
  constexpr unsigned assign = CU_GRAPH_COND_ASSIGN_DEFAULT;
  show_conditional("if 1", work, CU_GRAPH_COND_TYPE_IF, 1, 1, assign);
  show_conditional("if 0", work, CU_GRAPH_COND_TYPE_IF, 1, 0, assign);
  show_conditional("if 5", work, CU_GRAPH_COND_TYPE_IF, 1, 5, assign);
  show_conditional("if 1 with an else", work, CU_GRAPH_COND_TYPE_IF, 2, 1, assign);
  show_conditional("if 0 with an else", work, CU_GRAPH_COND_TYPE_IF, 2, 0, assign);
  show_conditional("if of three", work, CU_GRAPH_COND_TYPE_IF, 3, 0, assign);
  show_conditional("if of none", work, CU_GRAPH_COND_TYPE_IF, 0, 0, assign);
  show_conditional("while 0", work, CU_GRAPH_COND_TYPE_WHILE, 1, 0, assign);
  show_conditional("while of two", work, CU_GRAPH_COND_TYPE_WHILE, 2, 0, assign);
  show_conditional("switch 0", work, CU_GRAPH_COND_TYPE_SWITCH, 2, 0, assign);
  show_conditional("switch 1", work, CU_GRAPH_COND_TYPE_SWITCH, 2, 1, assign);
  show_conditional("switch 2", work, CU_GRAPH_COND_TYPE_SWITCH, 2, 2, assign);
  show_conditional("type 3", work, odd<CUgraphConditionalNodeType>(3), 1, 0, assign);
  show_conditional("flags 2", work, CU_GRAPH_COND_TYPE_IF, 1, 1, 2);
}

GROUP(conditional_handles, InContext) {
  GraphWork work;
  CUgraph graph = make_graph(), elsewhere = make_graph();
  CUgraphConditionalHandle handle = 0, second = 0;
  CUgraphExec exec = nullptr;
  CUgraphNode node = nullptr;
  const auto create = CU(cuGraphConditionalHandleCreate);
  show("create", create(&handle, graph, work.context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
  show("a value without the flag", create(&second, elsewhere, work.context, 1, 0));
  show("flags 0", create(&second, elsewhere, work.context, 0, 0));
  show("no context", create(&second, elsewhere, nullptr, 0, 0));
  show("no graph", create(&second, nullptr, work.context, 0, 0));
  show("no place", create(nullptr, graph, work.context, 0, 0));
  show("instantiate with a handle that no node has", CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
  CUDA_GRAPH_INSTANTIATE_PARAMS how;
  std::memset(&how, 0, sizeof how);
  show("the same with parameters", CU(cuGraphInstantiateWithParams)(&exec, graph, &how));
  show("its result", how.result_out);
  CUgraphNodeParams params = any(CU_GRAPH_NODE_TYPE_CONDITIONAL);
  params.conditional.handle = handle;
  params.conditional.size = 1;
  params.conditional.ctx = work.context;
  const auto add = CU(cuGraphAddNode_v2);
  show("the handle of another graph", add(&node, elsewhere, nullptr, nullptr, 0, &params));
  params.conditional.handle = handle;
  show("a node", add(&node, graph, nullptr, nullptr, 0, &params));
  const CUgraph body = params.conditional.phGraph_out == nullptr ? nullptr : params.conditional.phGraph_out[0];
  CUgraphNode again = nullptr;
  show("the handle again", add(&again, graph, nullptr, nullptr, 0, &params));
  auto type = odd<CUgraphNodeType>(99);
  CU(cuGraphNodeGetType)(node, &type);
  show("its type", type);
  if (body == nullptr) return;
  show("nodes of the body", nodes_in(body));
  const CUDA_HOST_NODE_PARAMS host{.fn = [](void*) {}, .userData = nullptr};
  show("a host node in the body", CU(cuGraphAddHostNode)(&again, body, nullptr, 0, &host));
  show_flag("an empty node in the body", add_empty(body) != nullptr);
  show("clone the graph", CU(cuGraphClone)(&elsewhere, graph));
  show("instantiate", CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
  show("capture into the body",
       CU(cuStreamBeginCaptureToGraph)(work.stream, body, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
  work.launch_empty(work.stream);
  show("end without a place for the graph", CU(cuStreamEndCapture)(work.stream, nullptr));
  show("nodes of the body", nodes_in(body));
  show("set the node", CU(cuGraphNodeSetParams)(node, &params));
}

}  // namespace
}  // namespace contract
