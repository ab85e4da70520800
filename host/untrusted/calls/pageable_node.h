// A node that copies the program's own memory. The program sees one copy node. The driver has a child graph of two
// nodes: a host function and the copy. The host function makes the guest move the bytes between the program's memory
// and the arena. Because these are nodes of the driver, lists, edges, clones and updates need no special code
// (docs/design/050-pageable-copies-in-graphs.md).
#pragma once

#include <array>
#include <optional>

#include "host/driver/driver.h"
#include "host/untrusted/callbacks/host_calls.h"

namespace host {

struct PageableNode {
  CUgraph inside;
  CUgraphNode function, copy;
  const HostCall* call;
  bool to_device;  // the function comes before the copy

  // Returns nothing if the node is of another kind.
  static std::optional<PageableNode> of(const Driver& driver, CUgraphNode node) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    PageableNode found{};
    if (driver.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS || type != CU_GRAPH_NODE_TYPE_GRAPH) return std::nullopt;
    if (driver.cuGraphChildGraphNodeGetGraph(node, &found.inside) != CUDA_SUCCESS) return std::nullopt;
    std::array<CUgraphNode, 2> nodes{};
    std::size_t count = 0, roots = 1;
    if (driver.cuGraphGetNodes(found.inside, nullptr, &count) != CUDA_SUCCESS || count != nodes.size())
      return std::nullopt;
    if (driver.cuGraphGetNodes(found.inside, nodes.data(), &count) != CUDA_SUCCESS) return std::nullopt;
    for (const CUgraphNode one : nodes) {
      driver.cuGraphNodeGetType(one, &type);
      if (type == CU_GRAPH_NODE_TYPE_HOST) found.function = one;
      if (type == CU_GRAPH_NODE_TYPE_MEMCPY) found.copy = one;
    }
    if (found.function == nullptr || found.copy == nullptr) return std::nullopt;
    CUDA_HOST_NODE_PARAMS params{};
    if (driver.cuGraphHostNodeGetParams(found.function, &params) != CUDA_SUCCESS || params.fn != &HostCall::run_again)
      return std::nullopt;
    found.call = static_cast<const HostCall*>(params.userData);
    CUgraphNode root = nullptr;
    if (!found.call->copies || driver.cuGraphGetRootNodes(found.inside, &root, &roots) != CUDA_SUCCESS)
      return std::nullopt;
    found.to_device = root == found.function;
    return found;
  }

  // Makes the child graph of the node. Returns null if the driver refuses; `result` then has the driver's error.
  static CUgraph make(const Driver& driver, const CUDA_HOST_NODE_PARAMS& function, const CUDA_MEMCPY3D& copy,
                      CUcontext context, bool to_device, CUresult& result) {
    CUgraph graph = nullptr;
    CUgraphNode first = nullptr, second = nullptr;
    if ((result = driver.cuGraphCreate(&graph, 0)) != CUDA_SUCCESS) return nullptr;
    if (to_device) {
      result = driver.cuGraphAddHostNode(&first, graph, nullptr, 0, &function);
      if (result == CUDA_SUCCESS) result = driver.cuGraphAddMemcpyNode(&second, graph, &first, 1, &copy, context);
    } else {
      result = driver.cuGraphAddMemcpyNode(&first, graph, nullptr, 0, &copy, context);
      if (result == CUDA_SUCCESS) result = driver.cuGraphAddHostNode(&second, graph, &first, 1, &function);
    }
    if (result == CUDA_SUCCESS) return graph;
    driver.cuGraphDestroy(graph);
    return nullptr;
  }
};

}  // namespace host
