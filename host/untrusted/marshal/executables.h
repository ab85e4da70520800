// The GPU memory of an executable graph, which counts against the VM's quota.
#pragma once

#include <cstdint>

#include "host/untrusted/marshal/request.h"

namespace host {

// Measured with an H200's driver (580.159.04, 2026-11-28), for each executable graph and for each kernel node in it. A
// memset node takes a twentieth of a kernel node. Nodes of child graphs are not counted.
inline constexpr std::uint64_t executable_bytes = 110 << 10, node_bytes = 2458;

// Counts the memory of the executable graph that the request makes. Returns false if there is not enough.
inline bool take_room_of_executable(Request& r, CUgraph graph) {
  std::size_t nodes = 0;
  if (graph == nullptr || r.session.driver.cuGraphGetNodes(graph, nullptr, &nodes) != CUDA_SUCCESS) nodes = 0;
  return r.may_take(r.working_device(), Footprint(nodes) * node_bytes + executable_bytes);
}

}  // namespace host
