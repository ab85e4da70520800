// Writes a graph as Graphviz text: each node with its number and type.
#include "host/simgpu/api/graph/graph.h"

#include <cstdio>

using namespace simgpu;

namespace {

const char* name_of_kind(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return "KERNEL";
    case CU_GRAPH_NODE_TYPE_MEMCPY: return "MEMCPY";
    case CU_GRAPH_NODE_TYPE_MEMSET: return "MEMSET";
    case CU_GRAPH_NODE_TYPE_HOST: return "HOST";
    case CU_GRAPH_NODE_TYPE_GRAPH: return "GRAPH";
    case CU_GRAPH_NODE_TYPE_EMPTY: return "EMPTY";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return "EVENT_WAIT";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return "EVENT_RECORD";
    default: return "CONDITIONAL";
  }
}

void print_graph(std::FILE* out, const Graph& graph) {
  const auto number = [](std::uint64_t id) { return static_cast<unsigned long long>(id); };
  std::fprintf(out, "subgraph cluster_%llu {\nlabel=\"graph_%llu\"\n", number(graph.id), number(graph.id));
  for (const std::shared_ptr<GraphNode>& node : graph.nodes) {
    const char* const kind = name_of_kind(type_of(node->work));
    std::fprintf(out, "\"node_%llu\" [shape=\"record\" label=\"{%s}\"];\n", number(node->id), kind);
    for (const Edge& edge : node->after)
      std::fprintf(out, "\"node_%llu\" -> \"node_%llu\";\n", number(node->id), number(edge.node->id));
    if (const auto* child = std::get_if<ChildWork>(&node->work); child != nullptr) print_graph(out, *child->graph);
    if (const auto* conditional = std::get_if<ConditionalWork>(&node->work); conditional != nullptr)
      for (const std::shared_ptr<Graph>& body : conditional->bodies) print_graph(out, *body);
  }
  std::fprintf(out, "}\n");
}

}  // namespace

CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char* path, unsigned) {
  return with_graph(hGraph, [&](Driver&, const Graph& graph) {
    if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::FILE* const out = std::fopen(path, "w");
    if (out == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
    std::fprintf(out, "digraph dot {\n");
    print_graph(out, graph);
    std::fprintf(out, "}\n");
    return std::fclose(out) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
  });
}
