// Conversions between the parameters of calls and NodeWork, for the files that define calls on nodes.
#pragma once

#include "host/simgpu/api/graph/graph.h"

#include <cstddef>
#include <functional>
#include <memory>

#include "host/simgpu/api/memory/rows.h"

namespace simgpu {

// Adds a node. `make` creates the node's work from the parameters of the call.
template <class F>
CUresult add_node(CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, const CUgraphEdgeData* data,
                  std::size_t count, F&& make) noexcept {
  return with_graph(handle, [&](Driver& driver, Graph& graph) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Edge> before;
    CUresult error = read_dependencies(driver, graph, dependencies, data, count, before);
    if (error != CUDA_SUCCESS) return error;
    NodeWork work = NoWork{};
    if (error = make(driver, graph, work); error != CUDA_SUCCESS) return error;
    *out = handle_of(driver, append_node(driver, graph, std::move(work), before));
    return CUDA_SUCCESS;
  });
}

// Kernel nodes (graph_kernel.cc). make_kernel_work keeps the attributes that are already in `out`.
CUDA_KERNEL_NODE_PARAMS_v2 widened(const CUDA_KERNEL_NODE_PARAMS_v1& params);
inline const CUDA_KERNEL_NODE_PARAMS_v2& widened(const CUDA_KERNEL_NODE_PARAMS_v2& params) { return params; }
CUresult make_kernel_work(Driver& driver, const CUDA_KERNEL_NODE_PARAMS_v2& params, KernelWork& out);
CUresult check_kernel_work(const KernelWork& work);
LaunchRequest request_of(const KernelWork& work);
void give_kernel(KernelWork& work, CUDA_KERNEL_NODE_PARAMS_v2& out);
bool is_kernel_node_attribute(CUkernelNodeAttrID id);
void set_attribute(KernelWork& work, const CUlaunchAttribute& attribute);

// Copy and fill nodes (graph_nodes.cc). A NULL context stands for the current context.
CUresult make_copy_work(Driver& driver, const CUDA_MEMCPY3D& asked, const std::shared_ptr<Context>& context,
                        CopyWork& out);
CUresult make_fill_work(Driver& driver, const CUDA_MEMSET_NODE_PARAMS_v1& asked,
                        const std::shared_ptr<Context>& context, FillWork& out);
CUresult check_fill_work(Driver& driver, const FillWork& work);
Fill fill_of(const CUDA_MEMSET_NODE_PARAMS_v1& asked);
CUresult find_node_context(Driver& driver, CUcontext handle, std::shared_ptr<Context>& out);

// Creates the work of any node except a conditional node (graph_any_node.cc).
CUresult make_any_work(Driver& driver, const CUgraphNodeParams& params, NodeWork& out);

// Changes the work of an existing node. The node keeps its context and attributes if the parameters give none.
CUresult change_work(Driver& driver, const CUgraphNodeParams& params, NodeWork& work);

}  // namespace simgpu
