// Graphs: nodes of work, and edges that order them.
//
// A node holds its own copy of its parameters (NodeWork). An executable graph (graph_exec.h) is a private clone of a graph: each
// of its nodes remembers the node that it was made from. A launch turns the clone into pieces of the schedule.
//
// Lifetime: a graph owns its nodes, and a node owns the graphs inside it. A handle is made when a call first returns it,
// and ends with the object. Locks: everything here is under Driver::graph_mutex, which is taken before Schedule::order()
// and before an event's mutex.
#pragma once

#include "host/simgpu/api/cuda_api.h"

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
  CUfunction function = nullptr;  // as the program named it, by one of the two or by both
  CUkernel kernel = nullptr;
  Dim3 grid, block;
  unsigned dynamic_shared = 0;
  bool by_buffer = false;  // the program passed `extra`; GetParams returns it
  PackedParameters parameters;
  std::vector<CUlaunchAttribute> attributes;
  // GetParams has returned pointers to these.
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
  std::vector<CUgraph> handles;  // of the bodies; phGraph_out points here
};

// In the order of CUgraphNodeType; ConditionalWork, the last, is 13 there.
using NodeWork =
    std::variant<KernelWork, CopyWork, FillWork, HostWork, ChildWork, NoWork, EventWait, EventRecord, ConditionalWork>;
CUgraphNodeType type_of(const NodeWork& work);

struct Edge {
  GraphNode* node;
  CUgraphEdgeData data;
};

struct GraphNode : std::enable_shared_from_this<GraphNode> {
  Graph* graph = nullptr;
  CUgraphNode handle = nullptr;  // null until a call returns it
  std::uint64_t id = 0;
  std::uint64_t original = 0;  // in a clone: id of the node that this one copies
  NodeWork work;
  std::vector<Edge> before, after;  // oldest edge first
  bool enabled = true;              // by cuGraphNodeSetEnabled
};

struct GraphExec;

struct Graph {
  CUgraph handle = nullptr;
  std::uint64_t id = 0;
  std::uint64_t original = 0;   // in a clone: id of the graph that this one copies
  GraphNode* inside = nullptr;  // the node that owns it, or null
  bool moved = false;           // by CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE
  bool captured_into = false;   // a capture is adding nodes
  std::vector<std::shared_ptr<GraphNode>> nodes;
  std::vector<std::shared_ptr<Condition>> conditions;
  UserReferences users;
  std::weak_ptr<GraphExec> exec;  // the newest instantiation
};

// A call about graphs. It needs no current context, and works after a fault.
template <class F>
CUresult with_graphs(F&& call) noexcept {
  return with_driver([&](Driver& driver) {
    const std::lock_guard lock(driver.graph_mutex);
    return call(driver);
  });
}

// A call that takes a graph or a node.
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
// INVALID_VALUE if the node is of another type.
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

// Ends the handles of a graph or a node, and of everything inside.
void drop_handles(Driver& driver, Graph& graph);
void drop_handles(Driver& driver, GraphNode& node);

// Sets Graph::inside of the graphs that the node owns.
void put_inside(GraphNode& node);

// True if the graph or one of its child graphs has conditional nodes.
bool has_conditions(const Graph& graph);

// A deep copy, with no handles.
std::shared_ptr<Graph> clone(Driver& driver, const Graph& graph);

GraphNode& append_node(Driver& driver, Graph& graph, NodeWork work, const std::vector<Edge>& before);

// Turns a list of nodes into edges to a new node. INVALID_VALUE: a node is of another graph, or appears twice.
enum class Repeats { Refuse, Drop };
CUresult read_dependencies(Driver& driver, const Graph& graph, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                           std::size_t count, std::vector<Edge>& out, Repeats repeats = Repeats::Refuse);
bool is_plain(const CUgraphEdgeData& data);
// True if an edge from this node may have this data.
bool is_edge_data(const CUgraphEdgeData& data, const GraphNode& from);

void connect(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data);
bool disconnect(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data);

bool is_connected(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data);

// Topological order. Nodes on or behind a cycle are left out.
std::vector<GraphNode*> in_order(const Graph& graph);

}  // namespace simgpu
