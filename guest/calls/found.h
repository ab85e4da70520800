// Graphs and nodes in a reply. The worker chooses the ids of objects that the driver reports.
#pragma once

#include <cstring>

#include "guest/process/process.h"
#include "ring/api/cuda.h"

namespace guest {

inline Object* found_graph(std::uint64_t id) { return session()->objects.adopt(id, api::Handle::Graph, nullptr); }

// Returns the node's object, which ends with its graph.
inline Object* found_node(std::uint64_t id, const Object* graph) {
  Object* const node = session()->objects.adopt(id, api::Handle::GraphNode, nullptr);
  if (node != nullptr && graph != nullptr && node->owner == 0) session()->objects.give(*node, *graph);
  return node;
}

// Returns whether an edge needs edge data, which older versions of calls cannot express.
inline bool has_data(const CUgraphEdgeData& data) {
  constexpr CUgraphEdgeData usual{};
  return std::memcmp(&data, &usual, sizeof data) != 0;
}

// Ends the session after a reply with an id that no correct worker sends.
inline CUresult lose_to_unsound_reply() {
  session()->liveness().lose("a reply names a graph that cannot be one");
  return CUDA_ERROR_DEVICE_UNAVAILABLE;
}

}  // namespace guest
