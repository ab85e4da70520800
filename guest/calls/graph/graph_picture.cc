// cuGraphDebugDotPrint. The file is the program's, so the guest writes the file from the driver's data about the graph.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "guest/calls/calls.h"
#include "guest/calls/stub.h"
#include "guest/process/process.h"
#include "ring/abi/descriptor.h"

namespace guest::calls {
namespace {

constexpr const char* names[] = {"KERNEL",    "MEMCPY",     "MEMSET",       "HOST",       "GRAPH",
                                 "EMPTY",     "EVENT_WAIT", "EVENT_RECORD", "SEM_SIGNAL", "SEM_WAIT",
                                 "MEM_ALLOC", "MEM_FREE",   "BATCH_MEM_OP", "CONDITIONAL"};

CUresult nodes_of(CUgraph graph, std::vector<CUgraphNode>& nodes) {
  std::size_t count = 0;
  if (const CUresult r = calls::cuGraphGetNodes(graph, nullptr, &count); r != CUDA_SUCCESS || count == 0) return r;
  nodes.resize(count);
  const CUresult result = calls::cuGraphGetNodes(graph, nodes.data(), &count);
  nodes.resize(count);
  return result;
}

CUresult edges_of(CUgraph graph, std::vector<CUgraphNode>& from, std::vector<CUgraphNode>& to) {
  std::size_t count = 0;
  if (const CUresult r = calls::cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &count);
      r != CUDA_SUCCESS || count == 0)
    return r;
  from.resize(count), to.resize(count);
  std::vector<CUgraphEdgeData> data(count);
  const CUresult result = calls::cuGraphGetEdges_v2(graph, from.data(), to.data(), data.data(), &count);
  from.resize(count), to.resize(count);
  return result;
}

std::string quoted(CUgraphNode node) {
  char name[40];
  std::snprintf(name, sizeof name, "\"node_%llx\"", reinterpret_cast<unsigned long long>(node));
  return name;
}

CUresult write_file(const char* path, const std::string& text) {
  const int fd = cuabi::open_file(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  close(fd);
  return done == text.size() ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

}  // namespace

// Ignores the flags, which add details: the drawing shows only the kind of each node.
CUresult cuGraphDebugDotPrint(CUgraph graph, const char* path, unsigned) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUgraphNode> nodes, from, to;
  if (const CUresult r = nodes_of(graph, nodes); r != CUDA_SUCCESS) return r;
  if (const CUresult r = edges_of(graph, from, to); r != CUDA_SUCCESS) return r;
  std::string picture = "digraph dot {\n";
  for (const CUgraphNode node : nodes) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    Stub<api::id_of::cuGraphNodeGetType>::call(node, &type);
    const auto at = static_cast<std::size_t>(type);
    picture += quoted(node) + " [label=\"" + (at < std::size(names) ? names[at] : "NODE") + "\"];\n";
  }
  for (std::size_t i = 0; i < from.size(); ++i) picture += quoted(from[i]) + " -> " + quoted(to[i]) + ";\n";
  return write_file(path, picture + "}\n");
}

}  // namespace guest::calls
