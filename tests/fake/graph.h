// Shared declarations for graphs and captures of the strict driver (graph.cc, graph_nodes.cc, capture.cc). The state's
// lock guards everything here.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fake/state.h"

namespace fake {

inline constexpr std::size_t most_nodes = 4096;  // the total of all graphs: each child graph may double its graph

struct Edge {
  const void *from, *to;
  CUgraphEdgeData data;
};

// A node's parameters. Only the members for the node's type are used.
struct Work {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
  std::vector<std::byte> block;  // a kernel's packed parameters
  bool used_extra = false;
  CUDA_MEMCPY3D copy{};
  CUDA_MEMSET_NODE_PARAMS fill{};
  CUDA_HOST_NODE_PARAMS function{};
  CUevent event = nullptr;
};

struct Node : Work {
  const void* graph = nullptr;
  const void* original = nullptr;  // the node of which this node is a clone
  std::vector<CUgraph> inside;     // the child graph, or the bodies of a conditional node
  // The arrays that cuGraphKernelNodeGetParams returns.
  std::vector<void*> each;
  std::size_t block_bytes = 0;
  void* extra[5] = {};
};

// Runs a kernel that the driver knows by its name.
void run_kernel(const Work& work);

// References to user objects.
using References = std::map<const void*, std::uint64_t>;

struct Graph {
  std::vector<const void*> nodes;
  std::vector<Edge> edges;
  References objects;
  const void* node = nullptr;  // the node that contains the graph
  bool captured_into = false;
};

struct Executable {
  std::map<const void*, Work> nodes;  // by the nodes of the executable's graph
  std::vector<const void*> order;     // the nodes in the order in which they were added
  std::set<const void*> disabled;
  std::vector<CUDA_HOST_NODE_PARAMS> functions;  // including those of child graphs
  References objects;
  cuuint64_t flags = 0;
};

struct UserObject {
  CUhostFn destructor;
  void* data;
  std::uint64_t references;
};

// The key by which the driver distinguishes streams: each thread has its own per-thread stream.
using StreamKey = std::pair<const void*, std::thread::id>;
struct Tip {
  const void* node;
  CUgraphEdgeData data;
};
using Tips = std::vector<Tip>;

struct Capture {
  CUgraph graph;
  bool owns_graph;  // the graph ends if the capture fails
  StreamKey origin;
  const void* context;
  std::map<StreamKey, Tips> streams;
  CUstreamCaptureMode mode;
  std::thread::id thread;
  cuuint64_t number;
  bool invalid = false, ended = false;
  // The arrays that cuStreamGetCaptureInfo returns.
  std::vector<CUgraphNode> nodes;
  std::vector<CUgraphEdgeData> edges;
};

struct Graphs {
  ~Graphs();
  std::map<const void*, Node> nodes;
  std::map<const void*, Graph> graphs;
  std::map<const void*, Executable> executables;
  std::map<const void*, UserObject> user_objects;
  std::map<CUgraphConditionalHandle, const void*> conditions;  // the graphs of conditional handles
  std::vector<std::shared_ptr<Capture>> captures;
  std::map<const void*, std::pair<std::shared_ptr<Capture>, Tips>> events;  // events whose last record was captured
  std::set<const void*> non_blocking;                                       // streams
  // The modes of threads; GLOBAL for all other threads.
  std::map<std::thread::id, CUstreamCaptureMode> modes;
  cuuint64_t captures_begun = 0, conditions_made = 0;
};

Graphs& graphs();  // the graphs of the state

// ---- graphs (graph.cc) ---------------------------------------------------------------------------------------------

Graph& graph_of(const char* call, CUgraph graph);
Node& node_of(const char* call, CUgraphNode node);
CUgraph make_graph(const void* node = nullptr);
void end_graph(const char* call, CUgraph graph);
// Returns false if a node is not in the graph or appears twice.
bool are_nodes_of(const char* call, CUgraph graph, const CUgraphNode* nodes, std::size_t count);
bool has_room();
CUgraphNode append(CUgraph graph, const Work& work, const Tips& after);
// Copies nodes, edges and references.
void clone_into(CUgraph to, CUgraph from);
void give_references(References& to, const References& from);
void end_references(const char* call, References& objects);
// Collects the host functions of a graph and its inner graphs, and references to what keeps them.
void take_functions(Executable& exec, const Graph& graph);

// ---- nodes (graph_nodes.cc) ----------------------------------------------------------------------------------------

// Reads a kernel's parameters as the driver does. Returns false if there are too few.
bool read_parameters(Work& work, const void* function, void** params, void** extra);

// ---- captures (capture.cc) -----------------------------------------------------------------------------------------

// Returns null if the stream is not captured.
std::shared_ptr<Capture> capture_of(CUstream stream, bool per_thread);

}  // namespace fake
