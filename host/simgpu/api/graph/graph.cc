// The structure of graphs: nodes, edges, clones, handles.
#include "host/simgpu/api/graph/graph.h"

#include <algorithm>
#include <unordered_set>

#include "host/simgpu/api/graph/condition.h"

namespace simgpu {
namespace {

// Calls `call` with each graph that the node owns.
template <class F>
void each_inside(GraphNode& node, F&& call) {
  if (auto* child = std::get_if<ChildWork>(&node.work); child != nullptr) call(child->graph);
  if (auto* conditional = std::get_if<ConditionalWork>(&node.work); conditional != nullptr)
    for (std::shared_ptr<Graph>& body : conditional->bodies) call(body);
}

bool same(const CUgraphEdgeData& a, const CUgraphEdgeData& b) {
  return a.from_port == b.from_port && a.to_port == b.to_port && a.type == b.type;
}

std::vector<Edge>::iterator find_edge(std::vector<Edge>& edges, const GraphNode& node, const CUgraphEdgeData& data) {
  return std::find_if(edges.begin(), edges.end(),
                      [&](const Edge& edge) { return edge.node == &node && same(edge.data, data); });
}

}  // namespace

CUgraphNodeType type_of(const NodeWork& work) {
  const bool conditional = std::holds_alternative<ConditionalWork>(work);
  return conditional ? CU_GRAPH_NODE_TYPE_CONDITIONAL : static_cast<CUgraphNodeType>(work.index());
}

std::shared_ptr<Graph> make_graph(Driver& driver) {
  auto graph = std::make_shared<Graph>();
  graph->id = driver.next_id();
  return graph;
}

CUgraph handle_of(Driver& driver, const std::shared_ptr<Graph>& graph) {
  if (graph->handle == nullptr) graph->handle = driver.graphs.insert(graph);
  return graph->handle;
}

CUgraphNode handle_of(Driver& driver, GraphNode& node) {
  if (node.handle == nullptr) node.handle = driver.graph_nodes.insert(node.shared_from_this());
  return node.handle;
}

void drop_handles(Driver& driver, Graph& graph) {
  driver.graphs.remove(graph.handle);
  graph.handle = nullptr;
  for (const std::shared_ptr<GraphNode>& node : graph.nodes) drop_handles(driver, *node);
}

void drop_handles(Driver& driver, GraphNode& node) {
  driver.graph_nodes.remove(node.handle);
  node.handle = nullptr;
  each_inside(node, [&](const std::shared_ptr<Graph>& inside) {
    inside->inside = nullptr;
    drop_handles(driver, *inside);
  });
}

void put_inside(GraphNode& node) {
  each_inside(node, [&](const std::shared_ptr<Graph>& graph) { graph->inside = &node; });
}

bool has_conditions(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const std::shared_ptr<GraphNode>& node) {
    const auto* child = std::get_if<ChildWork>(&node->work);
    return std::holds_alternative<ConditionalWork>(node->work) || (child != nullptr && has_conditions(*child->graph));
  });
}

std::shared_ptr<Graph> clone(Driver& driver, const Graph& graph) {
  const std::shared_ptr<Graph> out = make_graph(driver);
  out->original = graph.id;
  out->users = graph.users;
  out->conditions = graph.conditions;
  std::unordered_map<const GraphNode*, GraphNode*> clones;
  for (const std::shared_ptr<GraphNode>& node : graph.nodes) {
    GraphNode& copy = append_node(driver, *out, node->work, {});
    copy.original = node->id;
    copy.enabled = node->enabled;
    clones[node.get()] = &copy;
    each_inside(copy, [&](std::shared_ptr<Graph>& inside) { inside = clone(driver, *inside); });
    put_inside(copy);
    if (auto* conditional = std::get_if<ConditionalWork>(&copy.work)) conditional->handles.clear();
  }
  const auto counterparts = [&](const std::vector<Edge>& edges) {
    std::vector<Edge> found;
    for (const Edge& edge : edges) found.push_back({clones.at(edge.node), edge.data});
    return found;
  };
  for (const std::shared_ptr<GraphNode>& node : graph.nodes) {
    clones.at(node.get())->before = counterparts(node->before);
    clones.at(node.get())->after = counterparts(node->after);
  }
  return out;
}

GraphNode& append_node(Driver& driver, Graph& graph, NodeWork work, const std::vector<Edge>& before) {
  const auto node = std::make_shared<GraphNode>();
  node->graph = &graph;
  node->id = driver.next_id();
  node->work = std::move(work);
  put_inside(*node);
  graph.nodes.push_back(node);
  for (const Edge& edge : before) connect(*edge.node, *node, edge.data);
  return *node;
}

bool is_plain(const CUgraphEdgeData& data) { return same(data, {}); }

bool is_edge_data(const CUgraphEdgeData& data, const GraphNode& from) {
  const bool kernel = std::holds_alternative<KernelWork>(from.work);
  const bool zero =
      std::all_of(std::begin(data.reserved), std::end(data.reserved), [](auto byte) { return byte == 0; });
  if (!zero || data.to_port != 0) return false;
  if (data.from_port > CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER || (data.from_port != 0 && !kernel)) return false;
  if (data.type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT) return true;
  return data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && data.from_port != 0;
}

CUresult read_dependencies(Driver& driver, const Graph& graph, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                           std::size_t count, std::vector<Edge>& out, Repeats repeats) {
  if (count != 0 && nodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const std::shared_ptr<GraphNode> node = driver.graph_nodes.find(nodes[i]);
    const CUgraphEdgeData edge = data == nullptr ? CUgraphEdgeData{} : data[i];
    if (node == nullptr || node->graph != &graph || !is_edge_data(edge, *node)) return CUDA_ERROR_INVALID_VALUE;
    if (find_edge(out, *node, edge) == out.end())
      out.push_back({node.get(), edge});
    else if (repeats == Repeats::Refuse)
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

void connect(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data) {
  from.after.push_back({&to, data});
  to.before.push_back({&from, data});
}

bool disconnect(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data) {
  const auto forth = find_edge(from.after, to, data);
  if (forth == from.after.end()) return false;
  from.after.erase(forth);
  to.before.erase(find_edge(to.before, from, data));
  return true;
}

bool is_connected(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data) {
  return find_edge(from.after, to, data) != from.after.end();
}

std::vector<GraphNode*> in_order(const Graph& graph) {
  std::unordered_map<const GraphNode*, std::size_t> missing;
  std::vector<GraphNode*> out;
  out.reserve(graph.nodes.size());
  for (const std::shared_ptr<GraphNode>& node : graph.nodes) {
    if (node->before.empty()) out.push_back(node.get());
    missing[node.get()] = node->before.size();
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    for (const Edge& edge : out[i]->after)
      if (--missing[edge.node] == 0) out.push_back(edge.node);
  return out;
}

}  // namespace simgpu
