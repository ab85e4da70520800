// Graphs and nodes that a reply names: the worker chooses the ids of those that the driver finds.
#pragma once

#include <cstring>

#include "guest/process/process.h"
#include "ring/api/cuda.h"

namespace guest {

inline Object* found_graph(std::uint64_t id) { return session()->objects.adopt(id, api::Handle::Graph, nullptr); }

// A node ends with its graph.
inline Object* found_node(std::uint64_t id, const Object* graph) {
  Object* const node = session()->objects.adopt(id, api::Handle::GraphNode, nullptr);
  if (node != nullptr && graph != nullptr && node->owner == 0) session()->objects.give(*node, *graph);
  return node;
}

// Whether an edge is of another kind than forms without edge data know.
inline bool has_data(const CUgraphEdgeData& data) {
  constexpr CUgraphEdgeData usual{};
  return std::memcmp(&data, &usual, sizeof data) != 0;
}

// For a reply that names what no correct worker names.
inline CUresult lose_to_unsound_reply() {
  session()->lose("a reply names a graph that cannot be one");
  return CUDA_ERROR_DEVICE_UNAVAILABLE;
}

}  // namespace guest
