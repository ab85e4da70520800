// Graphs: nodes of work with edges that order them.
//
// A node owns a copy of its parameters (NodeWork). An executable graph (graph_exec.h) is a private clone of a graph,
// and its nodes refer to their originals. A launch turns the clone into work items of the schedule.
//
// Lifetime: a graph owns its nodes, and a node owns the graphs inside it. A handle is created when a call first returns
// it, and becomes invalid with the object. Driver::graph_mutex protects everything here. Lock it before
// Schedule::order() and before an event's mutex.
#pragma once

#include "host/simgpu/api/cuda_api.h"
#include "ring/base/mutex.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <variant>
#include <vector>

#include "host/simgpu/api/driver.h"
#include "host/simgpu/api/graph/user_object.h"
#include "host/simgpu/api/launch/launch.h"

namespace simgpu {

struct Graph;
struct GraphNode;
struct Condition;

struct KernelWork {
  std::shared_ptr<Context> context;
  FunctionReference reference;
  CUfunction function = nullptr;  // the program passed a function, a kernel, or both
  CUkernel kernel = nullptr;
  Dim3 grid, block;
  unsigned dynamic_shared = 0;
  bool by_buffer = false;  // the program passed the parameters by `extra`, and GetParams returns them so
  PackedParameters parameters;
  std::vector<CUlaunchAttribute> attributes;
  // GetParams returned pointers into these buffers.
  std::vector<void*> given;
  std::size_t given_bytes = 0;
};
struct CopyWork {
  std::shared_ptr<Context> context;
  CUDA_MEMCPY3D asked;
};
struct FillWork {
  std::shared_ptr<Context> context;
  CUDA_MEMSET_NODE_PARAMS_v1 asked;
};
struct HostWork {
  CUhostFn function;
  void* data;
};
struct ChildWork {
  std::shared_ptr<Graph> graph;
};
struct NoWork {};
struct EventWait {
  std::shared_ptr<Event> event;
};
struct EventRecord {
  std::shared_ptr<Event> event;
};
struct ConditionalWork {
  std::shared_ptr<Context> context;
  std::shared_ptr<Condition> condition;
  CUgraphConditionalNodeType type;
  std::vector<std::shared_ptr<Graph>> bodies;
  std::vector<CUgraph> handles;  // handles of the body graphs; phGraph_out points to this array
};

// The alternatives have the order of CUgraphNodeType, except the last: ConditionalWork is type 13.
using NodeWork =
    std::variant<KernelWork, CopyWork, FillWork, HostWork, ChildWork, NoWork, EventWait, EventRecord, ConditionalWork>;
CUgraphNodeType type_of(const NodeWork& work);

struct Edge {
  GraphNode* node;
  CUgraphEdgeData data;
};

struct GraphNode : std::enable_shared_from_this<GraphNode> {
  Graph* graph = nullptr;
  CUgraphNode handle = nullptr;  // null until a call returns the handle
  std::uint64_t id = 0;
  std::uint64_t original = 0;  // in a clone: id of the node that was copied
  NodeWork work;
  std::vector<Edge> before, after;  // the oldest edge comes first
  bool enabled = true;              // set by cuGraphNodeSetEnabled
};

struct GraphExec;

struct Graph {
  CUgraph handle = nullptr;
  std::uint64_t id = 0;
  std::uint64_t original = 0;   // in a clone: id of the graph that was copied
  GraphNode* inside = nullptr;  // the node that owns this graph, or null
  bool moved = false;           // a node took ownership by CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE
  bool captured_into = false;   // an open capture adds nodes to this graph
  std::vector<std::shared_ptr<GraphNode>> nodes;
  std::vector<std::shared_ptr<Condition>> conditions;
  UserReferences users;
  std::weak_ptr<GraphExec> exec;  // the newest executable graph of this graph
};

// Wraps a call on graphs, which needs no current context and works after a fault.
template <class F>
CUresult with_graphs(F&& call) noexcept {
  return with_driver([&](Driver& driver) {
    const ring::RecursiveLock lock(driver.graph_mutex);
    return call(driver);
  });
}

// Wraps a call that takes a graph or a node.
template <class F>
CUresult with_graph(CUgraph handle, F&& call) noexcept {
  return with_graphs([&](Driver& driver) {
    const std::shared_ptr<Graph> graph = driver.graphs.find(handle);
    return graph == nullptr ? CUDA_ERROR_INVALID_VALUE : call(driver, *graph);
  });
}
template <class F>
CUresult with_node(CUgraphNode handle, F&& call) noexcept {
  return with_graphs([&](Driver& driver) {
    const std::shared_ptr<GraphNode> node = driver.graph_nodes.find(handle);
    return node == nullptr ? CUDA_ERROR_INVALID_VALUE : call(driver, *node);
  });
}
// Wraps a call on a node of one type; fails with INVALID_VALUE if the node has another type.
template <class Work, class F>
CUresult with_node_of(CUgraphNode handle, F&& call) noexcept {
  return with_node(handle, [&](Driver& driver, GraphNode& node) {
    Work* const work = std::get_if<Work>(&node.work);
    return work == nullptr ? CUDA_ERROR_INVALID_VALUE : call(driver, node, *work);
  });
}

std::shared_ptr<Graph> make_graph(Driver& driver);
CUgraph handle_of(Driver& driver, const std::shared_ptr<Graph>& graph);
CUgraphNode handle_of(Driver& driver, GraphNode& node);

// Invalidates the handles of a graph or node and of everything inside it.
void drop_handles(Driver& driver, Graph& graph);
void drop_handles(Driver& driver, GraphNode& node);

// Sets Graph::inside of the graphs that the node owns.
void put_inside(GraphNode& node);

// Returns true if the graph or one of its child graphs has conditional nodes.
bool has_conditions(const Graph& graph);

// Returns a deep copy, whose graphs and nodes have no handles yet.
std::shared_ptr<Graph> clone(Driver& driver, const Graph& graph);

GraphNode& append_node(Driver& driver, Graph& graph, NodeWork work, const std::vector<Edge>& before);

// Turns a list of nodes into edges to a new node. Returns INVALID_VALUE if a node belongs to another graph or appears
// twice.
enum class Repeats { Refuse, Drop };
CUresult read_dependencies(Driver& driver, const Graph& graph, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                           std::size_t count, std::vector<Edge>& out, Repeats repeats = Repeats::Refuse);
bool is_plain(const CUgraphEdgeData& data);
// Returns true if an edge from this node may carry this data.
bool is_edge_data(const CUgraphEdgeData& data, const GraphNode& from);

void connect(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data);
bool disconnect(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data);

bool is_connected(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data);

// Returns the nodes in topological order, without nodes that are on a cycle or depend on one.
std::vector<GraphNode*> in_order(const Graph& graph);

}  // namespace simgpu
