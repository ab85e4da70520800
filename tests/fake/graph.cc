// Graphs: nodes, edges, executables, and user objects. A launch only calls the host functions.
#include "tests/fake/graph.h"

#include <algorithm>
#include <cstring>

namespace fake {

Graphs& graphs() { return *state->graphs; }

// At its end, the driver calls the destructors of the remaining user objects.
Graphs::~Graphs() {
  for (auto& [handle, object] : user_objects) object.destructor(object.data);
}

Graph& graph_of(const char* call, CUgraph graph) {
  check(call, Handle::Graph, graph);
  return graphs().graphs.at(graph);
}
Node& node_of(const char* call, CUgraphNode node) {
  check(call, Handle::GraphNode, node);
  return graphs().nodes.at(node);
}

namespace {

Executable& executable_of(const char* call, CUgraphExec exec) {
  check(call, Handle::GraphExec, exec);
  return graphs().executables.at(exec);
}

CUgraphNode handle_of(const void* node) { return static_cast<CUgraphNode>(const_cast<void*>(node)); }

// ---- user objects --------------------------------------------------------------------------------------------------

void release(const char* call, const void* handle, std::uint64_t count) {
  const auto at = graphs().user_objects.find(handle);
  // The program has released the object more often than it has retained it.
  if (at == graphs().user_objects.end()) return;
  UserObject& object = at->second;
  object.references -= std::min(object.references, count);
  if (object.references != 0) return;
  const UserObject ended = object;
  graphs().user_objects.erase(at);
  destroy(call, Handle::UserObject, handle);
  ended.destructor(ended.data);
}

bool is_count(unsigned count) { return count != 0 && count < 1U << 31; }

CUresult create_user_object(CUuserObject* out, void* data, CUhostFn destructor, unsigned references, unsigned flags) {
  constexpr const char* call = "cuUserObjectCreate";
  Entry entry(call, false, false);
  if (out == nullptr || destructor == nullptr) die("%s: no place, or no destructor", call);
  if (entry.failed()) return entry.result;
  if (flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC || references == 0) return CUDA_ERROR_INVALID_VALUE;
  *out = issue<CUuserObject>(Handle::UserObject);
  graphs().user_objects[*out] = {destructor, data, references};
  return CUDA_SUCCESS;
}

CUresult retain_user_object(CUuserObject object, unsigned count) {
  constexpr const char* call = "cuUserObjectRetain";
  Entry entry(call, false, false);
  check(call, Handle::UserObject, object);
  if (entry.failed()) return entry.result;
  if (!is_count(count)) return CUDA_ERROR_INVALID_VALUE;
  graphs().user_objects.at(object).references += count;
  return CUDA_SUCCESS;
}

CUresult release_user_object(CUuserObject object, unsigned count) {
  constexpr const char* call = "cuUserObjectRelease";
  Entry entry(call, false, false);
  check(call, Handle::UserObject, object);
  if (entry.failed()) return entry.result;
  if (!is_count(count)) return CUDA_ERROR_INVALID_VALUE;
  return release(call, object, count), CUDA_SUCCESS;
}

CUresult retain_for_graph(CUgraph graph, CUuserObject object, unsigned count, unsigned flags) {
  constexpr const char* call = "cuGraphRetainUserObject";
  Entry entry(call, false, false);
  Graph& to = graph_of(call, graph);
  check(call, Handle::UserObject, object);
  if (entry.failed()) return entry.result;
  if (!is_count(count) || (flags & ~unsigned{CU_GRAPH_USER_OBJECT_MOVE}) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags == 0) graphs().user_objects.at(object).references += count;
  to.objects[object] += count;
  return CUDA_SUCCESS;
}

CUresult release_for_graph(CUgraph graph, CUuserObject object, unsigned count) {
  constexpr const char* call = "cuGraphReleaseUserObject";
  Entry entry(call, false, false);
  Graph& of = graph_of(call, graph);
  check(call, Handle::UserObject, object);
  if (entry.failed()) return entry.result;
  if (!is_count(count)) return CUDA_ERROR_INVALID_VALUE;
  const auto at = of.objects.find(object);
  if (at == of.objects.end()) return CUDA_SUCCESS;
  const std::uint64_t released = std::min<std::uint64_t>(count, at->second);
  if ((at->second -= released) == 0) of.objects.erase(at);
  return release(call, object, released), CUDA_SUCCESS;
}

// ---- lists ---------------------------------------------------------------------------------------------------------

// Without arrays, returns the number of edges; otherwise as many edges as fit.
CUresult give(const std::vector<Edge>& list, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
              std::size_t* count) {
  if (count == nullptr) die("a list without a place for its count");
  if (from == nullptr && to == nullptr) return *count = list.size(), CUDA_SUCCESS;
  if (*count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < *count; ++i) {
    const Edge edge = i < list.size() ? list[i] : Edge{};
    if (from != nullptr) from[i] = handle_of(edge.from);
    if (to != nullptr) to[i] = handle_of(edge.to);
    if (data != nullptr) data[i] = edge.data;
  }
  return *count = std::min(*count, list.size()), CUDA_SUCCESS;
}

bool is_root(const Graph& graph, const void* node) {
  return std::none_of(graph.edges.begin(), graph.edges.end(), [&](const Edge& e) { return e.to == node; });
}

CUresult nodes_of(const char* call, CUgraph handle, CUgraphNode* out, std::size_t* count, bool roots) {
  Entry entry(call, false, false);
  const Graph& graph = graph_of(call, handle);
  if (entry.failed()) return entry.result;
  std::vector<Edge> list;
  for (const void* node : graph.nodes)
    if (!roots || is_root(graph, node)) list.push_back({node, nullptr, {}});
  return give(list, out, nullptr, nullptr, count);
}

CUresult edges_of(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, std::size_t* count) {
  constexpr const char* call = "cuGraphGetEdges_v2";
  Entry entry(call, false, false);
  const Graph& graph = graph_of(call, handle);
  return entry.failed() ? entry.result : give(graph.edges, from, to, data, count);
}

CUresult neighbours(const char* call, CUgraphNode handle, CUgraphNode* out, CUgraphEdgeData* data, std::size_t* count,
                    bool before) {
  Entry entry(call, false, false);
  const Graph& graph = graphs().graphs.at(node_of(call, handle).graph);
  if (entry.failed()) return entry.result;
  std::vector<Edge> list;
  for (const Edge& edge : graph.edges)
    if ((before ? edge.to : edge.from) == handle) list.push_back({before ? edge.from : edge.to, nullptr, edge.data});
  return give(list, out, nullptr, data, count);
}

// ---- edges ---------------------------------------------------------------------------------------------------------

bool is_same(const Edge& a, const Edge& b) { return a.from == b.from && a.to == b.to; }

// This call does not detect cycles; instantiation does.
CUresult change_edges(const char* call, CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                      const CUgraphEdgeData* data, std::size_t count, bool add) {
  Entry entry(call, false, false);
  Graph& graph = graph_of(call, handle);
  if (count != 0 && (from == nullptr || to == nullptr)) die("%s: no nodes", call);
  std::vector<Edge> edges = graph.edges;
  bool sound = true;
  for (std::size_t i = 0; i < count; ++i) {
    const Edge edge{from[i], to[i], data == nullptr ? CUgraphEdgeData{} : data[i]};
    sound = are_nodes_of(call, handle, from + i, 1) && are_nodes_of(call, handle, to + i, 1) && sound;
    const auto at = std::find_if(edges.begin(), edges.end(), [&](const Edge& e) { return is_same(e, edge); });
    sound = sound && from[i] != to[i] && (at == edges.end()) == add;
    if (!sound) continue;
    if (add)
      edges.push_back(edge);
    else
      edges.erase(at);
  }
  if (entry.failed()) return entry.result;
  if (!sound) return CUDA_ERROR_INVALID_VALUE;
  return graph.edges = std::move(edges), CUDA_SUCCESS;
}

// ---- graphs --------------------------------------------------------------------------------------------------------

// True if a capture fills this graph or a graph inside it.
bool is_open(const Graph& graph) {
  const auto holds_open = [](const void* node) {
    const std::vector<CUgraph>& inside = graphs().nodes.at(node).inside;
    return std::any_of(inside.begin(), inside.end(), [](CUgraph g) { return is_open(graphs().graphs.at(g)); });
  };
  return graph.captured_into || std::any_of(graph.nodes.begin(), graph.nodes.end(), holds_open);
}

void end_node(const char* call, const void* node) {
  for (const std::vector<CUgraph> inside = graphs().nodes.at(node).inside; CUgraph graph : inside)
    end_graph(call, graph);
  graphs().nodes.erase(node);
  destroy(call, Handle::GraphNode, node);
}

CUresult destroy_graph(CUgraph handle) {
  constexpr const char* call = "cuGraphDestroy";
  Entry entry(call, false, false);
  const Graph& graph = graph_of(call, handle);
  if (entry.failed()) return entry.result;
  if (graph.node != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (is_open(graph)) return CUDA_ERROR_ILLEGAL_STATE;
  return end_graph(call, handle), CUDA_SUCCESS;
}

// The last node of a captured stream cannot be destroyed.
CUresult destroy_node(CUgraphNode handle) {
  constexpr const char* call = "cuGraphDestroyNode";
  Entry entry(call, false, false);
  const Node& node = node_of(call, handle);
  if (entry.failed()) return entry.result;
  Graph& graph = graphs().graphs.at(node.graph);
  for (const CUgraph inside : node.inside)
    if (is_open(graphs().graphs.at(inside))) return CUDA_ERROR_ILLEGAL_STATE;
  if (graph.captured_into) return CUDA_ERROR_ILLEGAL_STATE;
  std::erase(graph.nodes, handle);
  std::erase_if(graph.edges, [&](const Edge& e) { return e.from == handle || e.to == handle; });
  return end_node(call, handle), CUDA_SUCCESS;
}

CUresult clone(CUgraph* out, CUgraph handle) {
  constexpr const char* call = "cuGraphClone";
  Entry entry(call, false, false);
  graph_of(call, handle);
  if (entry.failed()) return entry.result;
  if (!has_room()) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = make_graph();
  return clone_into(*out, handle), CUDA_SUCCESS;
}

CUresult find_in_clone(CUgraphNode* out, CUgraphNode original, CUgraph handle) {
  constexpr const char* call = "cuGraphNodeFindInClone";
  Entry entry(call, false, false);
  node_of(call, original);
  const Graph& graph = graph_of(call, handle);
  if (entry.failed()) return entry.result;
  for (const void* node : graph.nodes)
    if (graphs().nodes.at(node).original == original) return *out = handle_of(node), CUDA_SUCCESS;
  return CUDA_ERROR_INVALID_VALUE;
}

// ---- executables ---------------------------------------------------------------------------------------------------

// A node on a cycle; null if the graph has no cycle.
const void* node_in_cycle(const Graph& graph) {
  std::vector<const void*> left = graph.nodes;
  for (bool found = true; found;) {
    found = false;
    for (std::size_t i = 0; i < left.size() && !found; ++i) {
      found = std::none_of(graph.edges.begin(), graph.edges.end(), [&](const Edge& e) {
        return e.to == left[i] && std::find(left.begin(), left.end(), e.from) != left.end();
      });
      if (found) left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return left.empty() ? nullptr : left.front();
}

bool fills_no_memory(const Work& work) {
  const CUDA_MEMSET_NODE_PARAMS& f = work.fill;
  return work.type == CU_GRAPH_NODE_TYPE_MEMSET && !is_live(f.dst, f.width * f.elementSize);
}

CUresult instantiate(const char* call, CUgraphExec* out, CUgraph handle, CUDA_GRAPH_INSTANTIATE_PARAMS& params) {
  params.result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  params.hErrNode_out = nullptr;
  if (handle == nullptr || (params.flags & ~cuuint64_t{0xf}) != 0) return CUDA_ERROR_INVALID_VALUE;
  const Graph& graph = graph_of(call, handle);
  if (const void* const node = node_in_cycle(graph)) {
    params.result_out = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    params.hErrNode_out = handle_of(node);
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (const void* node : graph.nodes)
    if (fills_no_memory(graphs().nodes.at(node))) {
      params.hErrNode_out = handle_of(node);
      return CUDA_ERROR_INVALID_VALUE;
    }
  *out = issue<CUgraphExec>(Handle::GraphExec);
  Executable& exec = graphs().executables[*out];
  for (const void* node : graph.nodes) exec.nodes[node] = graphs().nodes.at(node);
  exec.order = graph.nodes;
  exec.flags = params.flags;
  take_functions(exec, graph);
  params.result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return CUDA_SUCCESS;
}

template <bool per_thread>
CUresult instantiate_with(CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  constexpr const char* call = "cuGraphInstantiateWithParams";
  ENTER(call);
  check_stream(call, params->hUploadStream);
  return instantiate(call, out, graph, *params);
}

CUresult update(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo* info) {
  constexpr const char* call = "cuGraphExecUpdate_v2";
  Entry entry(call);
  Executable& exec = executable_of(call, handle);
  const Graph& graph = graph_of(call, graph_handle);
  if (info == nullptr) die("%s: no place for the reason", call);
  *info = {};
  if (entry.failed()) return entry.result;
  info->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  if (graph.nodes.size() != exec.nodes.size()) {
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    if (!graph.nodes.empty()) info->errorNode = handle_of(graph.nodes.back());
    if (!graph.edges.empty()) info->errorFromNode = handle_of(graph.edges.back().from);
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  // The new graph's references replace the executable's.
  References before = std::exchange(exec.objects, {});
  exec.functions.clear();
  take_functions(exec, graph);
  end_references(call, before);
  return CUDA_SUCCESS;
}

template <bool per_thread>
CUresult launch(const char* call, CUgraphExec handle, CUstream stream, bool runs) {
  ENTER(call);
  const Executable& exec = executable_of(call, handle);
  check_stream(call, stream);
  if (const auto refused = refuse_captured(stream, per_thread)) return *refused;
  if (!runs) return CUDA_SUCCESS;
  for (const void* node : exec.order) {
    const Work& work = exec.nodes.at(node);
    if (work.type == CU_GRAPH_NODE_TYPE_KERNEL && !exec.disabled.contains(node)) run_kernel(work);
  }
  const std::vector<CUDA_HOST_NODE_PARAMS> functions = exec.functions;
  References kept;  // released after the functions have run
  give_references(kept, exec.objects);
  entry.lock.unlock();
  for (const CUDA_HOST_NODE_PARAMS& function : functions) function.fn(function.userData);
  entry.lock.lock();
  return end_references(call, kept), CUDA_SUCCESS;
}

CUresult destroy_executable(CUgraphExec handle) {
  constexpr const char* call = "cuGraphExecDestroy";
  Entry entry(call, false, false);
  Executable& exec = executable_of(call, handle);
  if (entry.failed()) return entry.result;
  end_references(call, exec.objects);
  graphs().executables.erase(handle);
  return destroy(call, Handle::GraphExec, handle), CUDA_SUCCESS;
}

// Only nodes with an effect can be disabled.
CUresult with_switch(const char* call, CUgraphExec handle, CUgraphNode node, unsigned* get, unsigned set) {
  Entry entry(call, false, false);
  Executable& exec = executable_of(call, handle);
  node_of(call, node);
  if (entry.failed()) return entry.result;
  const auto at = exec.nodes.find(node);
  if (at == exec.nodes.end() || at->second.type > CU_GRAPH_NODE_TYPE_MEMSET) return CUDA_ERROR_INVALID_VALUE;
  if (get != nullptr) return *get = exec.disabled.contains(node) ? 0 : 1, CUDA_SUCCESS;
  if (set != 0)
    exec.disabled.erase(node);
  else
    exec.disabled.insert(node);
  return CUDA_SUCCESS;
}

void fill_executables(host::Driver& t) {
  t.cuGraphInstantiateWithParams = instantiate_with<false>;
  t.cuGraphInstantiateWithParams_ptsz = instantiate_with<true>;
  t.cuGraphInstantiateWithFlags = [](CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
    constexpr const char* call = "cuGraphInstantiateWithFlags";
    Entry entry(call);
    CUDA_GRAPH_INSTANTIATE_PARAMS params{};
    params.flags = flags;
    return entry.failed() ? entry.result : instantiate(call, exec, graph, params);
  };
  t.cuGraphExecGetFlags = [](CUgraphExec exec, cuuint64_t* flags) {
    Entry entry("cuGraphExecGetFlags", false, false);
    return *flags = executable_of("cuGraphExecGetFlags", exec).flags, entry.result;
  };
  t.cuGraphExecUpdate_v2 = update;
  t.cuGraphUpload = [](CUgraphExec e, CUstream s) { return launch<false>("cuGraphUpload", e, s, false); };
  t.cuGraphUpload_ptsz = [](CUgraphExec e, CUstream s) { return launch<true>("cuGraphUpload", e, s, false); };
  t.cuGraphLaunch = [](CUgraphExec e, CUstream s) { return launch<false>("cuGraphLaunch", e, s, true); };
  t.cuGraphLaunch_ptsz = [](CUgraphExec e, CUstream s) { return launch<true>("cuGraphLaunch", e, s, true); };
  t.cuGraphExecDestroy = destroy_executable;
  t.cuGraphNodeSetEnabled = [](CUgraphExec e, CUgraphNode n, unsigned on) {
    return with_switch("cuGraphNodeSetEnabled", e, n, nullptr, on);
  };
  t.cuGraphNodeGetEnabled = [](CUgraphExec e, CUgraphNode n, unsigned* on) {
    return with_switch("cuGraphNodeGetEnabled", e, n, on, 0);
  };
}

CUresult with_graph_memory(const char* call, CUdevice device) {
  check_device_number(call, device);
  return Entry(call, false, false).result;
}

}  // namespace

CUgraph make_graph(const void* node) {
  const auto graph = issue<CUgraph>(Handle::Graph, node);
  graphs().graphs[graph] = {};
  graphs().graphs[graph].node = node;
  return graph;
}

void end_graph(const char* call, CUgraph handle) {
  Graph graph = std::move(graphs().graphs.at(handle));
  graphs().graphs.erase(handle);
  for (const void* node : graph.nodes) end_node(call, node);
  end_references(call, graph.objects);
  std::erase_if(graphs().conditions, [&](const auto& c) { return c.second == handle; });
  destroy(call, Handle::Graph, handle);
}

bool are_nodes_of(const char* call, CUgraph graph, const CUgraphNode* nodes, std::size_t count) {
  if (count != 0 && nodes == nullptr) die("%s: no nodes", call);
  bool are = true;
  for (std::size_t i = 0; i < count; ++i)
    are = node_of(call, nodes[i]).graph == graph && std::find(nodes, nodes + i, nodes[i]) == nodes + i && are;
  return are;
}

bool has_room() { return graphs().nodes.size() < most_nodes; }

CUgraphNode append(CUgraph graph, const Work& work, const Tips& after) {
  const auto node = issue<CUgraphNode>(Handle::GraphNode, graph);
  Node& made = graphs().nodes[node];
  static_cast<Work&>(made) = work;
  made.graph = graph;
  Graph& of = graphs().graphs.at(graph);
  of.nodes.push_back(node);
  for (const Tip& tip : after) of.edges.push_back({tip.node, node, tip.data});
  return node;
}

void clone_into(CUgraph to, CUgraph from) {
  const Graph source = graphs().graphs.at(from);
  std::map<const void*, const void*> clones;
  for (const void* original : source.nodes) {
    const Node node = graphs().nodes.at(original);
    const CUgraphNode copy = append(to, node, {});
    graphs().nodes.at(copy).original = clones[original] = original;
    clones[original] = copy;
    for (const CUgraph inside : node.inside) {
      const CUgraph graph = make_graph(copy);
      graphs().nodes.at(copy).inside.push_back(graph);
      clone_into(graph, inside);
    }
  }
  Graph& made = graphs().graphs.at(to);
  for (const Edge& edge : source.edges) made.edges.push_back({clones.at(edge.from), clones.at(edge.to), edge.data});
  give_references(made.objects, source.objects);
}

void give_references(References& to, const References& from) {
  for (const auto& [object, count] : from) {
    const auto at = graphs().user_objects.find(object);
    // The program has released the object more often than it has retained it.
    if (at == graphs().user_objects.end()) continue;
    at->second.references += count;
    to[object] += count;
  }
}

void end_references(const char* call, References& objects) {
  for (const auto& [object, count] : std::exchange(objects, {})) release(call, object, count);
}

void take_functions(Executable& exec, const Graph& graph) {
  give_references(exec.objects, graph.objects);
  for (const void* handle : graph.nodes) {
    const Node& node = graphs().nodes.at(handle);
    if (node.type == CU_GRAPH_NODE_TYPE_HOST) exec.functions.push_back(node.function);
    for (const CUgraph inside : node.inside) take_functions(exec, graphs().graphs.at(inside));
  }
}

void fill_graphs(host::Driver& t) {
  state->graphs = std::make_shared<Graphs>();
  t.cuGraphCreate = [](CUgraph* graph, unsigned flags) {
    Entry entry("cuGraphCreate", false, false);
    if (entry.failed()) return entry.result;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return *graph = make_graph(), CUDA_SUCCESS;
  };
  t.cuGraphDestroy = destroy_graph;
  t.cuGraphDestroyNode = destroy_node;
  t.cuGraphClone = clone;
  t.cuGraphNodeFindInClone = find_in_clone;
  t.cuGraphGetNodes = [](CUgraph g, CUgraphNode* out, std::size_t* n) {
    return nodes_of("cuGraphGetNodes", g, out, n, false);
  };
  t.cuGraphGetRootNodes = [](CUgraph g, CUgraphNode* out, std::size_t* n) {
    return nodes_of("cuGraphGetRootNodes", g, out, n, true);
  };
  t.cuGraphGetEdges_v2 = edges_of;
  t.cuGraphNodeGetDependencies_v2 = [](CUgraphNode node, CUgraphNode* out, CUgraphEdgeData* data, std::size_t* n) {
    return neighbours("cuGraphNodeGetDependencies_v2", node, out, data, n, true);
  };
  t.cuGraphNodeGetDependentNodes_v2 = [](CUgraphNode node, CUgraphNode* out, CUgraphEdgeData* data, std::size_t* n) {
    return neighbours("cuGraphNodeGetDependentNodes_v2", node, out, data, n, false);
  };
  t.cuGraphAddDependencies_v2 = [](CUgraph g, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* data, std::size_t n) {
    return change_edges("cuGraphAddDependencies_v2", g, from, to, data, n, true);
  };
  t.cuGraphRemoveDependencies_v2 = [](CUgraph g, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData* data, std::size_t n) {
    return change_edges("cuGraphRemoveDependencies_v2", g, from, to, data, n, false);
  };
  t.cuUserObjectCreate = create_user_object;
  t.cuUserObjectRetain = retain_user_object;
  t.cuUserObjectRelease = release_user_object;
  t.cuGraphRetainUserObject = retain_for_graph;
  t.cuGraphReleaseUserObject = release_for_graph;
  t.cuDeviceGraphMemTrim = [](CUdevice d) { return with_graph_memory("cuDeviceGraphMemTrim", d); };
  t.cuDeviceGetGraphMemAttribute = [](CUdevice d, CUgraphMem_attribute, void* value) {
    std::memset(value, 0, sizeof(cuuint64_t));
    return with_graph_memory("cuDeviceGetGraphMemAttribute", d);
  };
  t.cuDeviceSetGraphMemAttribute = [](CUdevice d, CUgraphMem_attribute, void* value) {
    touch(value, sizeof(cuuint64_t));
    return with_graph_memory("cuDeviceSetGraphMemAttribute", d);
  };
  fill_executables(t);
}

}  // namespace fake
