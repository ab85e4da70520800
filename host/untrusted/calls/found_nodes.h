// Makes ids for graphs and nodes that the driver returns. Precondition of all functions: the session's making() or
// ending() is held.
#pragma once

#include <cstdint>
#include <cstring>

#include "host/untrusted/marshal/request.h"

namespace host {

inline std::uint64_t found_graph(const Request& r, CUgraph graph) {
  return r.session.objects.put_found(api::Handle::Graph, graph, r.place(api::Handle::Graph));
}
// Returns the id of a node, or 0 for no node. The node ends with its graph.
inline std::uint64_t found_node(const Request& r, CUgraphNode node, std::uint64_t graph) {
  if (node == nullptr) return 0;
  return r.session.objects.put_found(api::Handle::GraphNode, node, r.place(api::Handle::GraphNode, graph));
}

inline std::uint64_t as_word(const CUgraphEdgeData& data) {
  std::uint64_t word = 0;
  static_assert(sizeof word == sizeof data);
  std::memcpy(&word, &data, sizeof word);
  return word;
}

}  // namespace host
