// Kernel nodes: their parameters and attributes.
#include "host/simgpu/api/graph/graph.h"

#include <algorithm>
#include <cstring>

#include "host/simgpu/api/context/context.h"
#include "host/simgpu/api/device/hints.h"
#include "host/simgpu/api/graph/graph_calls.h"
#include "host/simgpu/api/module/library.h"

namespace simgpu {
namespace {

// Makes a context current for the lifetime of this object, because resolve() looks up a CUkernel in the current
// context.
class CurrentFor {
 public:
  CurrentFor(Driver& driver, const std::shared_ptr<Context>& context) : contexts_(driver.thread().contexts) {
    contexts_.push_back(context);
  }
  ~CurrentFor() { contexts_.pop_back(); }
  CurrentFor(const CurrentFor&) = delete;
  CurrentFor& operator=(const CurrentFor&) = delete;

 private:
  std::vector<std::shared_ptr<Context>>& contexts_;
};

CUresult find_function(Driver& driver, const CUDA_KERNEL_NODE_PARAMS_v2& params, FunctionReference& out) {
  CUresult error = CUDA_SUCCESS;
  const CUfunction function =
      // resolve() accepts a CUfunction or a CUkernel
      params.func != nullptr ? params.func : reinterpret_cast<CUfunction>(params.kern);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const CUcontext named = params.func != nullptr ? nullptr : params.ctx;
  const std::shared_ptr<Context> context = context_named(driver, named, &error);
  if (context == nullptr && (named != nullptr || is_kind(function, HandleKind::Kernel))) return error;
  const CurrentFor current(driver, context);
  out = resolve(driver, function, &error);
  return out.function == nullptr ? error : CUDA_SUCCESS;
}

}  // namespace

LaunchRequest request_of(const KernelWork& work) {
  LaunchRequest request{.function = work.function,
                        .grid = work.grid,
                        .block = work.block,
                        .dynamic_shared = work.dynamic_shared,
                        .stream = nullptr,
                        .parameters = nullptr,
                        .extra = nullptr,
                        .cooperative = false};
  for (const CUlaunchAttribute& attribute : work.attributes) read_attribute(attribute, request);
  return request;
}

CUresult check_kernel_work(const KernelWork& work) {
  LaunchRequest request = request_of(work);
  return check_launch(request, *work.reference.function, device_multiprocessors);
}

CUresult make_kernel_work(Driver& driver, const CUDA_KERNEL_NODE_PARAMS_v2& params, KernelWork& out) {
  if (const CUresult error = find_function(driver, params, out.reference); error != CUDA_SUCCESS) return error;
  out.context = out.reference.module->context;
  if (!out.context->active.load(std::memory_order_acquire)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  out.function = params.func;
  out.kernel = params.kern;  // stored even if there is a function: GetParams returns it, and the runtime reads it there
  out.grid = {params.gridDimX, params.gridDimY, params.gridDimZ};
  out.block = {params.blockDimX, params.blockDimY, params.blockDimZ};
  out.dynamic_shared = params.sharedMemBytes;
  out.by_buffer = params.extra != nullptr;
  if (const CUresult error = check_kernel_work(out); error != CUDA_SUCCESS) return error;
  LaunchRequest request = request_of(out);
  request.parameters = params.kernelParams;
  request.extra = params.extra;
  out.parameters.clear();  // bytes beyond the end of a short buffer are 0
  return pack_parameters(request, *out.reference.function->code, out.parameters);
}

void give_kernel(KernelWork& work, CUDA_KERNEL_NODE_PARAMS_v2& out) {
  const Function& code = *work.reference.function->code;
  out = {.func = work.function,
         .gridDimX = work.grid.x,
         .gridDimY = work.grid.y,
         .gridDimZ = work.grid.z,
         .blockDimX = work.block.x,
         .blockDimY = work.block.y,
         .blockDimZ = work.block.z,
         .sharedMemBytes = work.dynamic_shared,
         .kernelParams = nullptr,
         .extra = nullptr,
         .kern = work.kernel,
         .ctx = work.context->handle};
  work.given.clear();
  work.given_bytes = work.parameters.size();
  if (work.by_buffer) {
    work.given = {CU_LAUNCH_PARAM_BUFFER_POINTER, work.parameters.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                  &work.given_bytes, CU_LAUNCH_PARAM_END};
    out.extra = work.given.data();
    return;
  }
  for (const auto& parameter : code.params) work.given.push_back(work.parameters.data() + parameter.offset);
  out.kernelParams = work.given.empty() ? nullptr : work.given.data();
}

CUDA_KERNEL_NODE_PARAMS_v2 widened(const CUDA_KERNEL_NODE_PARAMS_v1& params) {
  CUDA_KERNEL_NODE_PARAMS_v2 wide{};
  std::memcpy(&wide, &params, sizeof params);  // v1 is a prefix of v2
  return wide;
}

bool is_kernel_node_attribute(CUkernelNodeAttrID id) {
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE: return true;
    default: return false;
  }
}

void set_attribute(KernelWork& work, const CUlaunchAttribute& attribute) {
  for (CUlaunchAttribute& set : work.attributes)
    if (set.id == attribute.id) {
      set = attribute;
      return;
    }
  work.attributes.push_back(attribute);
}

}  // namespace simgpu

using namespace simgpu;

namespace {

CUlaunchAttributeValue unset_value(CUkernelNodeAttrID id) {
  CUlaunchAttributeValue value{};
  if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) value.memSyncDomainMap = {.default_ = 0, .remote = 1};
  return value;
}

// Serves both versions of the struct: the older is a prefix of the newer.
template <class Params>
CUresult set_kernel(CUgraphNode node, const Params* params) {
  return with_node_of<KernelWork>(node, [&](Driver& driver, GraphNode&, KernelWork& work) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    KernelWork changed;
    changed.attributes = work.attributes;
    const CUresult error = make_kernel_work(driver, widened(*params), changed);
    if (error == CUDA_SUCCESS) work = std::move(changed);
    return error;
  });
}

template <class Params>
CUresult get_kernel(CUgraphNode node, Params* params) {
  return with_node_of<KernelWork>(node, [&](Driver&, GraphNode&, KernelWork& work) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_KERNEL_NODE_PARAMS_v2 all{};
    give_kernel(work, all);
    std::memcpy(params, &all, sizeof *params);
    return CUDA_SUCCESS;
  });
}

template <class Params>
CUresult add_kernel(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                    const Params* params) {
  return add_node(out, graph, dependencies, nullptr, count, [&](Driver& driver, Graph&, NodeWork& work) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return make_kernel_work(driver, widened(*params), work.emplace<KernelWork>());
  });
}

}  // namespace

CUresult cuGraphAddKernelNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                              std::size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return add_kernel(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                                 std::size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v2* nodeParams) {
  return add_kernel(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return get_kernel(hNode, nodeParams);
}
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v2* nodeParams) {
  return get_kernel(hNode, nodeParams);
}
CUresult cuGraphKernelNodeSetParams(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return set_kernel(hNode, nodeParams);
}
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v2* nodeParams) {
  return set_kernel(hNode, nodeParams);
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, CUkernelNodeAttrValue* value_out) {
  return with_node_of<KernelWork>(hNode, [&](Driver&, GraphNode&, const KernelWork& work) {
    if (value_out == nullptr || !is_kernel_node_attribute(attr)) return CUDA_ERROR_INVALID_VALUE;
    *value_out = unset_value(attr);
    for (const CUlaunchAttribute& set : work.attributes)
      if (set.id == attr) *value_out = set.value;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue* value) {
  return with_node_of<KernelWork>(hNode, [&](Driver&, GraphNode&, KernelWork& work) {
    if (value == nullptr || !is_kernel_node_attribute(attr)) return CUDA_ERROR_INVALID_VALUE;
    CUlaunchAttribute attribute{};
    attribute.id = attr;
    attribute.value = *value;
    LaunchRequest scratch = request_of(work);
    if (const CUresult error = read_attribute(attribute, scratch); error != CUDA_SUCCESS) return error;
    set_attribute(work, attribute);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src) {
  return with_node_of<KernelWork>(dst, [&](Driver& driver, GraphNode&, KernelWork& to) {
    const std::shared_ptr<GraphNode> source = driver.graph_nodes.find(src);
    const auto* from = source == nullptr ? nullptr : std::get_if<KernelWork>(&source->work);
    if (from == nullptr || from->context != to.context) return CUDA_ERROR_INVALID_VALUE;
    to.attributes = from->attributes;
    return CUDA_SUCCESS;
  });
}
