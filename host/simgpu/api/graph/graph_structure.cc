// Calls that create, clone, list and destroy graphs, nodes and edges.
#include "host/simgpu/api/graph/graph.h"

#include <algorithm>

using namespace simgpu;

namespace {

// Returns a list by CUDA's convention: without an array, only the count; else fills the array and sets its rest to
// NULL.
template <class Handle>
CUresult give_list(const std::vector<Handle>& list, Handle* out, std::size_t* count) {
  if (count == nullptr || (out != nullptr && *count == 0)) return CUDA_ERROR_INVALID_VALUE;
  if (out != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) out[i] = i < list.size() ? list[i] : Handle{};
    *count = std::min(*count, list.size());
  } else {
    *count = list.size();
  }
  return CUDA_SUCCESS;
}

CUresult give_nodes(Driver& driver, const std::vector<GraphNode*>& nodes, CUgraphNode* out, std::size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUgraphNode> handles;
  const std::size_t wanted = out == nullptr ? 0 : std::min(*count, nodes.size());
  for (std::size_t i = 0; i < wanted; ++i) handles.push_back(handle_of(driver, *nodes[i]));
  handles.resize(nodes.size());
  return give_list(handles, out, count);
}

// Returns the endpoints of edges with their data. Returns LOSSY_QUERY if an edge has data and the caller passes no
// array for it.
CUresult give_edges(Driver& driver, const std::vector<Edge>& edges, CUgraphNode* nodes, CUgraphEdgeData* data,
                    std::size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (nodes == nullptr && data != nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto plain = [](const Edge& edge) { return is_plain(edge.data); };
  if (nodes != nullptr && data == nullptr && !std::all_of(edges.begin(), edges.end(), plain))
    return CUDA_ERROR_LOSSY_QUERY;
  std::vector<GraphNode*> ends;
  std::vector<CUgraphEdgeData> kinds;
  for (const Edge& edge : edges) {
    ends.push_back(edge.node);
    kinds.push_back(edge.data);
  }
  std::size_t room = *count;
  if (data != nullptr) give_list(kinds, data, &room);
  return give_nodes(driver, ends, nodes, count);
}

CUresult edges_of(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, std::size_t* count) {
  return with_graph(handle, [&](Driver& driver, const Graph& graph) {
    if (count == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<GraphNode*> sources;
    std::vector<Edge> edges;
    for (const std::shared_ptr<GraphNode>& node : graph.nodes)
      for (const Edge& edge : node->after) {
        sources.push_back(node.get());
        edges.push_back(edge);
      }
    std::size_t room = *count;
    if (const CUresult r = give_edges(driver, edges, to, data, count); r != CUDA_SUCCESS) return r;
    return from == nullptr ? CUDA_SUCCESS : give_nodes(driver, sources, from, &room);
  });
}

using Pair = std::pair<GraphNode*, GraphNode*>;

// Reads edges from two lists of nodes: the edges' sources and their targets.
CUresult read_pairs(Driver& driver, const Graph& graph, const CUgraphNode* from, const CUgraphNode* to,
                    std::size_t count, std::vector<Pair>& out) {
  if (count != 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const std::shared_ptr<GraphNode> source = driver.graph_nodes.find(from[i]), end = driver.graph_nodes.find(to[i]);
    if (source == nullptr || end == nullptr || source == end) return CUDA_ERROR_INVALID_VALUE;
    if (source->graph != &graph || end->graph != &graph) return CUDA_ERROR_INVALID_VALUE;
    out.push_back({source.get(), end.get()});
  }
  return CUDA_SUCCESS;
}

// Adds all edges or none. Refuses edges that already exist. Only instantiation detects cycles.
CUresult add_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data,
                   std::size_t count) {
  return with_graph(handle, [&](Driver& driver, const Graph& graph) {
    std::vector<Pair> pairs;
    if (const CUresult r = read_pairs(driver, graph, from, to, count, pairs); r != CUDA_SUCCESS) return r;
    for (std::size_t i = 0; i < count; ++i) {
      const auto& [source, end] = pairs[i];
      const CUgraphEdgeData edge = data == nullptr ? CUgraphEdgeData{} : data[i];
      if (is_edge_data(edge, *source) && !is_connected(*source, *end, edge)) {
        connect(*source, *end, edge);
        continue;
      }
      for (std::size_t k = 0; k < i; ++k)
        disconnect(*pairs[k].first, *pairs[k].second, data == nullptr ? CUgraphEdgeData{} : data[k]);
      return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

// Returns the data of the edge between two nodes; null if there is no edge.
const CUgraphEdgeData* edge_between(const GraphNode& from, const GraphNode& to) {
  const auto at =
      std::find_if(from.after.begin(), from.after.end(), [&](const Edge& edge) { return edge.node == &to; });
  return at == from.after.end() ? nullptr : &at->data;
}

// Removes edges. Like the driver, this function ignores the data of edges.
CUresult remove_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, std::size_t count) {
  return with_graph(handle, [&](Driver& driver, const Graph& graph) {
    std::vector<Pair> pairs;
    if (const CUresult r = read_pairs(driver, graph, from, to, count, pairs); r != CUDA_SUCCESS) return r;
    for (const auto& [source, end] : pairs)
      if (edge_between(*source, *end) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& [source, end] : pairs)
      if (const CUgraphEdgeData* const edge = edge_between(*source, *end); edge != nullptr)
        disconnect(*source, *end, CUgraphEdgeData(*edge));
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuGraphCreate(CUgraph* phGraph, unsigned flags) {
  return with_graphs([&](Driver& driver) {
    if (phGraph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *phGraph = handle_of(driver, make_graph(driver));
    return CUDA_SUCCESS;
  });
}

// A child graph is destroyed with its node and cannot be destroyed by this call.
CUresult cuGraphDestroy(CUgraph hGraph) {
  return with_graph(hGraph, [&](Driver& driver, Graph& graph) {
    if (graph.inside != nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (graph.captured_into) return CUDA_ERROR_ILLEGAL_STATE;
    drop_handles(driver, graph);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphClone(CUgraph* phGraphClone, CUgraph originalGraph) {
  return with_graph(originalGraph, [&](Driver& driver, const Graph& graph) {
    if (phGraphClone == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (has_conditions(graph)) return CUDA_ERROR_NOT_SUPPORTED;
    *phGraphClone = handle_of(driver, clone(driver, graph));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphNodeFindInClone(CUgraphNode* phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph) {
  return with_graph(hClonedGraph, [&](Driver& driver, const Graph& graph) {
    const std::shared_ptr<GraphNode> original = driver.graph_nodes.find(hOriginalNode);
    if (phNode == nullptr || original == nullptr || graph.original != original->graph->id)
      return CUDA_ERROR_INVALID_VALUE;
    for (const std::shared_ptr<GraphNode>& node : graph.nodes) {
      if (node->original != original->id) continue;
      *phNode = handle_of(driver, *node);
      return CUDA_SUCCESS;
    }
    *phNode = nullptr;
    return CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType* type) {
  return with_node(hNode, [&](Driver&, const GraphNode& node) {
    if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *type = type_of(node.work);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode* nodes, std::size_t* numNodes) {
  return with_graph(hGraph, [&](Driver& driver, const Graph& graph) {
    std::vector<GraphNode*> all;
    for (const std::shared_ptr<GraphNode>& node : graph.nodes) all.push_back(node.get());
    return give_nodes(driver, all, nodes, numNodes);
  });
}

// Returns the newest root first.
CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode* rootNodes, std::size_t* numRootNodes) {
  return with_graph(hGraph, [&](Driver& driver, const Graph& graph) {
    std::vector<GraphNode*> roots;
    for (const std::shared_ptr<GraphNode>& node : graph.nodes)
      if (node->before.empty()) roots.push_back(node.get());
    std::reverse(roots.begin(), roots.end());
    return give_nodes(driver, roots, rootNodes, numRootNodes);
  });
}

CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, std::size_t* numEdges) {
  return edges_of(hGraph, from, to, nullptr, numEdges);
}
CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edgeData,
                            std::size_t* numEdges) {
  return edges_of(hGraph, from, to, edgeData, numEdges);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode* dependencies, CUgraphEdgeData* edgeData,
                                       std::size_t* numDependencies) {
  return with_node(hNode, [&](Driver& driver, const GraphNode& node) {
    return give_edges(driver, node.before, dependencies, edgeData, numDependencies);
  });
}
CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode* dependencies, std::size_t* numDependencies) {
  return cuGraphNodeGetDependencies_v2(hNode, dependencies, nullptr, numDependencies);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode* dependentNodes, CUgraphEdgeData* edgeData,
                                         std::size_t* numDependentNodes) {
  return with_node(hNode, [&](Driver& driver, const GraphNode& node) {
    return give_edges(driver, node.after, dependentNodes, edgeData, numDependentNodes);
  });
}
CUresult cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode* dependentNodes, std::size_t* numDependentNodes) {
  return cuGraphNodeGetDependentNodes_v2(hNode, dependentNodes, nullptr, numDependentNodes);
}

CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                std::size_t numDependencies) {
  return add_edges(hGraph, from, to, nullptr, numDependencies);
}
CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* edgeData, std::size_t numDependencies) {
  return add_edges(hGraph, from, to, edgeData, numDependencies);
}

CUresult cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                   std::size_t numDependencies) {
  return remove_edges(hGraph, from, to, numDependencies);
}
CUresult cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData*, std::size_t numDependencies) {
  return remove_edges(hGraph, from, to, numDependencies);
}

CUresult cuGraphDestroyNode(CUgraphNode hNode) {
  return with_node(hNode, [&](Driver& driver, GraphNode& node) {
    Graph& graph = *node.graph;
    if (graph.captured_into) return CUDA_ERROR_ILLEGAL_STATE;
    while (!node.before.empty()) disconnect(*node.before.back().node, node, node.before.back().data);
    while (!node.after.empty()) disconnect(node, *node.after.back().node, node.after.back().data);
    drop_handles(driver, node);
    std::erase_if(graph.nodes, [&](const std::shared_ptr<GraphNode>& other) { return other.get() == &node; });
    return CUDA_SUCCESS;
  });
}
