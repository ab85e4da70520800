// Nodes that a program adds itself, and their parameters.
#include <algorithm>
#include <cstring>

#include "tests/fake/graph.h"

namespace fake {
namespace {

// Adds a node with this work after its dependencies.
CUresult add(const char* call, CUgraphNode* out, CUgraph graph, const CUgraphNode* after, std::size_t count,
             const Work& work) {
  if (out == nullptr) die("%s: no place for the node", call);
  if (!are_nodes_of(call, graph, after, count)) return CUDA_ERROR_INVALID_VALUE;
  if (!has_room()) return CUDA_ERROR_OUT_OF_MEMORY;
  Tips tips;
  for (std::size_t i = 0; i < count; ++i) tips.push_back({after[i], {}});
  return *out = append(graph, work, tips), CUDA_SUCCESS;
}

// A null context means the current one.
void check_nodes_context(const char* call, CUcontext context) {
  if (context != nullptr) check_context(call, context);
}

// A node's checked parameters, and the call's result for these parameters.
struct Judged {
  CUresult result = CUDA_SUCCESS;
  Work work;
};

Judged judge(const char* call, const CUDA_KERNEL_NODE_PARAMS_v2* p) {
  Judged judged;
  touch(p, sizeof *p);
  judged.work.type = CU_GRAPH_NODE_TYPE_KERNEL;
  judged.work.kernel = *p;
  if (p->func != nullptr) check(call, Handle::Function, p->func);
  if (p->kern != nullptr) check(call, Handle::Kernel, p->kern);
  const void* const function = p->func != nullptr ? static_cast<const void*>(p->func) : p->kern;
  const auto is_bad = [](unsigned n) { return n == 0; };
  const unsigned sizes[] = {p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX, p->blockDimY, p->blockDimZ};
  if (function == nullptr || std::any_of(std::begin(sizes), std::end(sizes), is_bad) ||
      !read_parameters(judged.work, function, p->kernelParams, p->extra))
    judged.result = CUDA_ERROR_INVALID_VALUE;
  return judged;
}

Judged judge(const char* call, const CUDA_MEMCPY3D* c) {
  Judged judged;
  touch(c, sizeof *c);
  judged.work.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  judged.work.copy = *c;
  const bool none = c->WidthInBytes == 0 || c->Height == 0 || c->Depth == 0;
  judged.result = none ? CUDA_ERROR_INVALID_VALUE : judge_copy(call, *c);
  return judged;
}

Judged judge(const char* call, const CUDA_MEMSET_NODE_PARAMS* p) {
  Judged judged;
  touch(p, sizeof *p);
  judged.work.type = CU_GRAPH_NODE_TYPE_MEMSET;
  judged.work.fill = *p;
  const bool is_size = p->elementSize == 1 || p->elementSize == 2 || p->elementSize == 4;
  if (!is_size || p->width == 0 || p->height == 0) return judged.result = CUDA_ERROR_INVALID_VALUE, judged;
  check_device(call, p->dst, p->width * p->elementSize + (p->height - 1) * (p->height > 1 ? p->pitch : 0));
  return judged;
}

Judged judge(const char* call, const CUDA_HOST_NODE_PARAMS* p) {
  Judged judged;
  touch(p, sizeof *p);
  if (p->fn == nullptr) die("%s: no function", call);
  judged.work.type = CU_GRAPH_NODE_TYPE_HOST;
  judged.work.function = *p;
  return judged;
}

Judged judge_event(const char* call, CUevent event, CUgraphNodeType type) {
  check(call, Handle::Event, event);
  Judged judged;
  judged.work.type = type;
  judged.work.event = event;
  return judged;
}

// Changes the work of a node, or of an executable's node, to work of the same type.
CUresult set(Work& to, const Judged& judged) {
  if (to.type != judged.work.type) return CUDA_ERROR_INVALID_VALUE;
  if (judged.result == CUDA_SUCCESS) to = judged.work;
  return judged.result;
}

CUresult set_node(const char* call, CUgraphNode node, const Judged& judged) {
  Node& of = node_of(call, node);
  return set(of, judged);
}

CUresult set_in(const char* call, CUgraphExec exec, CUgraphNode node, const Judged& judged) {
  check(call, Handle::GraphExec, exec);
  node_of(call, node);
  auto& nodes = graphs().executables.at(exec).nodes;
  const auto at = nodes.find(node);
  return at == nodes.end() ? CUDA_ERROR_INVALID_VALUE : set(at->second, judged);
}

template <class Params>
CUresult get(const char* call, CUgraphNode node, CUgraphNodeType type, Params Work::*member, Params* out) {
  const Node& of = node_of(call, node);
  if (of.type != type) return CUDA_ERROR_INVALID_VALUE;
  return std::memcpy(out, &(of.*member), sizeof *out), CUDA_SUCCESS;
}

// Defines the functions of one type of node. `Params`: a pointer to the node's parameters.
#define WITH(call, needs_context)          \
  constexpr const char* name = call;       \
  Entry entry(name, false, needs_context); \
  if (entry.failed()) return entry.result

// ---- kernels -------------------------------------------------------------------------------------------------------

// Returns pointers to the driver's own arrays.
CUresult get_kernel(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v2* out) {
  WITH("cuGraphKernelNodeGetParams_v2", false);
  Node& node = node_of(name, handle);
  if (node.type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_INVALID_VALUE;
  *out = node.kernel;
  out->kernelParams = out->extra = nullptr;
  if (node.used_extra) {
    node.block_bytes = node.block.size();
    void* const extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, node.block.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                           &node.block_bytes, CU_LAUNCH_PARAM_END};
    std::copy(std::begin(extra), std::end(extra), node.extra);
    return out->extra = node.extra, CUDA_SUCCESS;
  }
  node.each.assign(1, nullptr);
  const std::size_t count = node.block.empty() ? 0 : 3;
  static constexpr std::size_t offsets[] = {0, 8, 12};
  if (count != 0) node.each.clear();
  for (std::size_t i = 0; i < count; ++i) node.each.push_back(node.block.data() + offsets[i]);
  return out->kernelParams = node.each.data(), CUDA_SUCCESS;
}

void fill_kernel_nodes(host::Driver& t) {
  t.cuGraphAddKernelNode_v2 = [](CUgraphNode* out, CUgraph g, const CUgraphNode* after, std::size_t n,
                                 const CUDA_KERNEL_NODE_PARAMS_v2* p) {
    WITH("cuGraphAddKernelNode_v2", true);
    graph_of(name, g);
    const Judged judged = judge(name, p);
    return judged.result == CUDA_SUCCESS ? add(name, out, g, after, n, judged.work) : judged.result;
  };
  t.cuGraphKernelNodeGetParams_v2 = get_kernel;
  t.cuGraphKernelNodeSetParams_v2 = [](CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* p) {
    WITH("cuGraphKernelNodeSetParams_v2", true);
    return set_node(name, node, judge(name, p));
  };
  t.cuGraphExecKernelNodeSetParams_v2 = [](CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* p) {
    WITH("cuGraphExecKernelNodeSetParams_v2", true);
    return set_in(name, exec, node, judge(name, p));
  };
  t.cuGraphKernelNodeCopyAttributes = [](CUgraphNode to, CUgraphNode from) {
    WITH("cuGraphKernelNodeCopyAttributes", false);
    const bool are_kernels =
        node_of(name, to).type == CU_GRAPH_NODE_TYPE_KERNEL && node_of(name, from).type == CU_GRAPH_NODE_TYPE_KERNEL;
    return are_kernels ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  t.cuGraphKernelNodeGetAttribute = [](CUgraphNode node, CUkernelNodeAttrID, CUkernelNodeAttrValue* value) {
    WITH("cuGraphKernelNodeGetAttribute", false);
    if (node_of(name, node).type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_INVALID_VALUE;
    return std::memset(value, 1, sizeof *value), CUDA_SUCCESS;
  };
  t.cuGraphKernelNodeSetAttribute = [](CUgraphNode node, CUkernelNodeAttrID tag, const CUkernelNodeAttrValue* value) {
    WITH("cuGraphKernelNodeSetAttribute", false);
    touch(value, sizeof *value);
    CUlaunchAttribute attribute{};
    attribute.id = tag;
    attribute.value = *value;
    demand_described(name, attribute);
    return node_of(name, node).type == CU_GRAPH_NODE_TYPE_KERNEL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
}

// ---- copies, fills, functions, events ------------------------------------------------------------------------------

void fill_copy_nodes(host::Driver& t) {
  t.cuGraphAddMemcpyNode = [](CUgraphNode* out, CUgraph g, const CUgraphNode* after, std::size_t n,
                              const CUDA_MEMCPY3D* p, CUcontext context) {
    WITH("cuGraphAddMemcpyNode", true);
    graph_of(name, g);
    check_nodes_context(name, context);
    const Judged judged = judge(name, p);
    return judged.result == CUDA_SUCCESS ? add(name, out, g, after, n, judged.work) : judged.result;
  };
  t.cuGraphMemcpyNodeGetParams = [](CUgraphNode node, CUDA_MEMCPY3D* out) {
    WITH("cuGraphMemcpyNodeGetParams", false);
    return get(name, node, CU_GRAPH_NODE_TYPE_MEMCPY, &Work::copy, out);
  };
  t.cuGraphMemcpyNodeSetParams = [](CUgraphNode node, const CUDA_MEMCPY3D* p) {
    WITH("cuGraphMemcpyNodeSetParams", true);
    return set_node(name, node, judge(name, p));
  };
  t.cuGraphExecMemcpyNodeSetParams = [](CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* p, CUcontext context) {
    WITH("cuGraphExecMemcpyNodeSetParams", true);
    check_nodes_context(name, context);
    return set_in(name, exec, node, judge(name, p));
  };
}

void fill_fill_nodes(host::Driver& t) {
  t.cuGraphAddMemsetNode = [](CUgraphNode* out, CUgraph g, const CUgraphNode* after, std::size_t n,
                              const CUDA_MEMSET_NODE_PARAMS* p, CUcontext context) {
    WITH("cuGraphAddMemsetNode", true);
    graph_of(name, g);
    check_nodes_context(name, context);
    const Judged judged = judge(name, p);
    return judged.result == CUDA_SUCCESS ? add(name, out, g, after, n, judged.work) : judged.result;
  };
  t.cuGraphMemsetNodeGetParams = [](CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* out) {
    WITH("cuGraphMemsetNodeGetParams", false);
    return get(name, node, CU_GRAPH_NODE_TYPE_MEMSET, &Work::fill, out);
  };
  t.cuGraphMemsetNodeSetParams = [](CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* p) {
    WITH("cuGraphMemsetNodeSetParams", true);
    return set_node(name, node, judge(name, p));
  };
  t.cuGraphExecMemsetNodeSetParams = [](CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* p,
                                        CUcontext context) {
    WITH("cuGraphExecMemsetNodeSetParams", true);
    check_nodes_context(name, context);
    return set_in(name, exec, node, judge(name, p));
  };
}

void fill_host_nodes(host::Driver& t) {
  t.cuGraphAddHostNode = [](CUgraphNode* out, CUgraph g, const CUgraphNode* after, std::size_t n,
                            const CUDA_HOST_NODE_PARAMS* p) {
    WITH("cuGraphAddHostNode", false);
    graph_of(name, g);
    return add(name, out, g, after, n, judge(name, p).work);
  };
  t.cuGraphHostNodeGetParams = [](CUgraphNode node, CUDA_HOST_NODE_PARAMS* out) {
    WITH("cuGraphHostNodeGetParams", false);
    return get(name, node, CU_GRAPH_NODE_TYPE_HOST, &Work::function, out);
  };
  t.cuGraphHostNodeSetParams = [](CUgraphNode node, const CUDA_HOST_NODE_PARAMS* p) {
    WITH("cuGraphHostNodeSetParams", false);
    return set_node(name, node, judge(name, p));
  };
  // An executable's launches also call a function that the executable's graph lacks.
  t.cuGraphExecHostNodeSetParams = [](CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* p) {
    WITH("cuGraphExecHostNodeSetParams", true);
    const CUresult result = set_in(name, exec, node, judge(name, p));
    if (result == CUDA_SUCCESS) graphs().executables.at(exec).functions.push_back(*p);
    return result;
  };
}

void fill_event_nodes(host::Driver& t) {
#define EVENT_NODE(Type, type)                                                                             \
  t.cuGraphAddEvent##Type##Node = [](CUgraphNode* out, CUgraph g, const CUgraphNode* after, std::size_t n, \
                                     CUevent event) {                                                      \
    WITH("cuGraphAddEvent" #Type "Node", false);                                                           \
    graph_of(name, g);                                                                                     \
    return add(name, out, g, after, n, judge_event(name, event, type).work);                               \
  };                                                                                                       \
  t.cuGraphEvent##Type##NodeGetEvent = [](CUgraphNode node, CUevent* out) {                                \
    WITH("cuGraphEvent" #Type "NodeGetEvent", false);                                                      \
    return get(name, node, type, &Work::event, out);                                                       \
  };                                                                                                       \
  t.cuGraphEvent##Type##NodeSetEvent = [](CUgraphNode node, CUevent event) {                               \
    WITH("cuGraphEvent" #Type "NodeSetEvent", false);                                                      \
    return set_node(name, node, judge_event(name, event, type));                                           \
  };                                                                                                       \
  t.cuGraphExecEvent##Type##NodeSetEvent = [](CUgraphExec exec, CUgraphNode node, CUevent event) {         \
    WITH("cuGraphExecEvent" #Type "NodeSetEvent", true);                                                   \
    return set_in(name, exec, node, judge_event(name, event, type));                                       \
  }
  EVENT_NODE(Record, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  EVENT_NODE(Wait, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
#undef EVENT_NODE
}

// ---- graphs inside nodes -------------------------------------------------------------------------------------------

std::size_t size_of(CUgraph graph) {
  std::size_t size = 0;
  for (const void* node : graphs().graphs.at(graph).nodes) {
    ++size;
    for (const CUgraph inside : graphs().nodes.at(node).inside) size += size_of(inside);
  }
  return size;
}

CUresult add_child(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, std::size_t count, CUgraph child) {
  WITH("cuGraphAddChildGraphNode", false);
  graph_of(name, graph);
  graph_of(name, child);
  if (graphs().nodes.size() + size_of(child) >= most_nodes) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUgraph inside = make_graph();  // cloned first, since the graph may be its own child
  clone_into(inside, child);
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_GRAPH;
  if (const CUresult r = add(name, out, graph, after, count, work); r != CUDA_SUCCESS)
    return end_graph(name, inside), r;
  graphs().nodes.at(*out).inside.push_back(inside);
  graphs().graphs.at(inside).node = *out;
  state->owners[inside] = *out;
  return CUDA_SUCCESS;
}

CUresult add_conditional(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData*,
                         std::size_t count, CUgraphNodeParams* p) {
  WITH("cuGraphAddNode_v2", true);
  graph_of(name, graph);
  touch(p, sizeof *p);
  if (p->type != CU_GRAPH_NODE_TYPE_CONDITIONAL) die("%s: a node of type %d", name, p->type);
  const auto condition = graphs().conditions.find(p->conditional.handle);
  if (condition == graphs().conditions.end() && !state->races) die("%s: a handle that was never given", name);
  check_nodes_context(name, p->conditional.ctx);
  const unsigned bodies = p->conditional.size;
  const bool fits = p->conditional.type == CU_GRAPH_COND_TYPE_IF       ? bodies == 1 || bodies == 2
                    : p->conditional.type == CU_GRAPH_COND_TYPE_WHILE  ? bodies == 1
                    : p->conditional.type == CU_GRAPH_COND_TYPE_SWITCH ? bodies != 0
                                                                       : false;
  if (!fits || condition == graphs().conditions.end() || condition->second != graph) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  if (const CUresult r = add(name, out, graph, after, count, work); r != CUDA_SUCCESS) return r;
  for (unsigned i = 0; i < bodies; ++i) {
    const CUgraph body = make_graph(*out);
    graphs().nodes.at(*out).inside.push_back(body);
  }
  return p->conditional.phGraph_out = graphs().nodes.at(*out).inside.data(), CUDA_SUCCESS;
}

void fill_inner_graphs(host::Driver& t) {
  t.cuGraphAddChildGraphNode = add_child;
  t.cuGraphChildGraphNodeGetGraph = [](CUgraphNode node, CUgraph* out) {
    WITH("cuGraphChildGraphNodeGetGraph", false);
    const Node& of = node_of(name, node);
    if (of.type != CU_GRAPH_NODE_TYPE_GRAPH) return CUDA_ERROR_INVALID_VALUE;
    return *out = of.inside.front(), CUDA_SUCCESS;
  };
  t.cuGraphExecChildGraphNodeSetParams = [](CUgraphExec exec, CUgraphNode node, CUgraph child) {
    WITH("cuGraphExecChildGraphNodeSetParams", true);
    const Graph& graph = graph_of(name, child);
    Judged judged;
    judged.work.type = CU_GRAPH_NODE_TYPE_GRAPH;
    const CUresult result = set_in(name, exec, node, judged);
    if (result == CUDA_SUCCESS) take_functions(graphs().executables.at(exec), graph);
    return result;
  };
  t.cuGraphConditionalHandleCreate = [](CUgraphConditionalHandle* out, CUgraph graph, CUcontext context, unsigned,
                                        unsigned flags) {
    WITH("cuGraphConditionalHandleCreate", true);
    graph_of(name, graph);
    check_nodes_context(name, context);
    if (flags > CU_GRAPH_COND_ASSIGN_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
    *out = 0x1000 + graphs().conditions_made++;
    graphs().conditions[*out] = graph;
    return CUDA_SUCCESS;
  };
  t.cuGraphAddNode_v2 = add_conditional;
}

}  // namespace

bool read_parameters(Work& work, const void* function, void** params, void** extra) {
  const std::vector<ParameterPlace> places = parameters_of(function);
  const std::size_t bytes = places.empty() ? 0 : places.back().offset + places.back().bytes;
  work.used_extra = params == nullptr;
  work.block.assign(bytes, std::byte{0});
  if (params != nullptr) {
    for (std::size_t i = 0; i < places.size(); ++i)
      std::memcpy(work.block.data() + places[i].offset, params[i], places[i].bytes);
    return true;
  }
  if (extra == nullptr) return bytes == 0;
  if (extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER || extra[2] != CU_LAUNCH_PARAM_BUFFER_SIZE ||
      extra[4] != CU_LAUNCH_PARAM_END)
    die("parameters in another form");
  const auto* const block = static_cast<const std::byte*>(extra[1]);
  const std::size_t given = *static_cast<const std::size_t*>(extra[3]);
  touch(block, given);
  if (given < bytes) return false;
  return work.block.assign(block, block + given), true;
}

void fill_graph_nodes(host::Driver& t) {
  t.cuGraphAddEmptyNode = [](CUgraphNode* out, CUgraph g, const CUgraphNode* after, std::size_t n) {
    WITH("cuGraphAddEmptyNode", false);
    graph_of(name, g);
    return add(name, out, g, after, n, {});
  };
  t.cuGraphNodeGetType = [](CUgraphNode node, CUgraphNodeType* type) {
    WITH("cuGraphNodeGetType", false);
    return *type = node_of(name, node).type, CUDA_SUCCESS;
  };
  fill_kernel_nodes(t);
  fill_copy_nodes(t);
  fill_fill_nodes(t);
  fill_host_nodes(t);
  fill_event_nodes(t);
  fill_inner_graphs(t);
}

}  // namespace fake
