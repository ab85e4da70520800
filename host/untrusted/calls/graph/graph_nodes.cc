// Nodes that a program adds to graphs explicitly.
#include <cstring>
#include <vector>

#include "host/untrusted/callbacks/host_calls.h"
#include "host/untrusted/calls/attributes.h"
#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/copy_side.h"
#include "host/untrusted/calls/found_nodes.h"
#include "host/untrusted/calls/kernel_node.h"
#include "host/untrusted/calls/node_parts.h"
#include "host/untrusted/calls/pageable_node.h"

namespace host::calls {
namespace {

// Calls the driver for a new node of the record's graph, and replies with the node's id.
template <class A, class Record, class Make>
CUresult add_node(A& a, std::uint64_t Record::*graph, std::uint64_t Record::*dependencies, Make make) {
  const auto beside = a.session().making();
  if (!a.session().may_make_another()) return CUDA_ERROR_OUT_OF_MEMORY;
  CUgraphNode node = nullptr;
  const auto* const nodes = reinterpret_cast<const CUgraphNode*>(a.behind(dependencies));
  const CUresult result =
      make(&node, a.template handle<CUgraph>(graph), nodes, static_cast<std::size_t>(a.record.*dependencies));
  return result == CUDA_SUCCESS ? a.answer(result, {.node = found_node(a.request, node, a.record.*graph)}) : result;
}

// ---- kernels -------------------------------------------------------------------------------------------------------

// Returns a node's parameters from the driver, packed. Returns an empty block if the driver does not report their
// sizes.
std::vector<std::byte> packed_by_driver(const Driver& driver, const CUDA_KERNEL_NODE_PARAMS_v2& p) {
  std::vector<std::byte> block;
  if (p.extra != nullptr) {
    const void* at = nullptr;
    std::size_t bytes = 0;
    for (void** word = p.extra; *word != CU_LAUNCH_PARAM_END; word += 2) {
      if (*word == CU_LAUNCH_PARAM_BUFFER_POINTER) at = word[1];
      if (*word == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<const std::size_t*>(word[1]);
    }
    const auto* const from = static_cast<const std::byte*>(at);
    if (from != nullptr && bytes <= ring::max_record / 2) block.assign(from, from + bytes);
    return block;
  }
  for (std::size_t i = 0, offset = 0, size = 0; p.kernelParams != nullptr; ++i) {
    const CUresult answered = p.func != nullptr ? driver.cuFuncGetParamInfo(p.func, i, &offset, &size)
                                                : driver.cuKernelGetParamInfo(p.kern, i, &offset, &size);
    if (answered != CUDA_SUCCESS || offset > ring::max_record / 2 || size > ring::max_record / 2) break;
    block.resize(std::max(block.size(), offset + size));
    std::memcpy(block.data() + offset, p.kernelParams[i], size);
  }
  return block;
}

// Returns the id of a function that the session knows, or that this function finds by its kernel. Returns 0 if the
// function has ended since the node was made.
std::uint64_t id_of_function(const Request& r, CUfunction function, std::uint64_t kernel) {
  Objects& objects = r.session.objects;
  if (function == nullptr) return 0;
  for (const api::Handle kind : {api::Handle::Function, api::Handle::Kernel})
    if (const std::uint64_t id = objects.id_of(kind, function)) return id;
  if (kernel == 0) return 0;
  return objects.put_found(api::Handle::Function, function, r.place(api::Handle::Function, kernel));
}
std::uint64_t id_of_kernel(const Request& r, CUkernel kernel) {
  return kernel == nullptr ? 0 : r.session.objects.id_of(api::Handle::Kernel, kernel);
}

}  // namespace

CUresult cuGraphAddKernelNode_v2(call_of::cuGraphAddKernelNode_v2& a) {
  using R = api::AddKernelNodeRecord;
  const KernelNode kernel(a);
  return add_node(a, &R::graph, &R::dependencies, [&](auto... p) { return a.call(p..., kernel.get()); });
}

CUresult cuGraphKernelNodeGetParams_v2(call_of::cuGraphKernelNodeGetParams_v2& a) {
  const auto beside = a.session().making();
  CUDA_KERNEL_NODE_PARAMS_v2 p{};
  const CUresult result = a.call(a.handle<CUgraphNode>(&api::GetNodeRecord::node), &p);
  if (result != CUDA_SUCCESS) return result;
  const std::uint64_t kernel = id_of_kernel(a.request, p.kern), function = id_of_function(a.request, p.func, kernel);
  std::vector<std::byte> block;
  if (function != 0 || kernel != 0)
    block = packed_by_driver(a.driver(), p);  // queries the driver only for a function that exists
  const auto bytes = static_cast<std::uint32_t>(block.size());
  block.resize(ring::padded(block.size()));
  return a.answer(result,
                  {.function = function,
                   .kernel = kernel,
                   .grid = {p.gridDimX, p.gridDimY, p.gridDimZ},
                   .block = {p.blockDimX, p.blockDimY, p.blockDimZ},
                   .shared = p.sharedMemBytes,
                   .param_bytes = bytes,
                   .used_extra = p.extra != nullptr ? 1U : 0U,
                   .bytes = 0},
                  block);
}

CUresult cuGraphKernelNodeGetAttribute(call_of::cuGraphKernelNodeGetAttribute& a) {
  return get_attribute(a, a.handle<CUgraphNode>(&api::GetNodeAttributeRecord::node));
}

CUresult cuGraphAddMemcpyNode(call_of::cuGraphAddMemcpyNode& a) {
  using R = api::AddCopyNodeRecord;
  const CUDA_MEMCPY3D copy = copy_of(a);
  return add_node(a, &R::graph, &R::dependencies,
                  [&](auto... p) { return a.call(p..., &copy, context_of(a.request)); });
}

CUresult cuGraphMemcpyNodeGetParams(call_of::cuGraphMemcpyNodeGetParams& a) {
  CUDA_MEMCPY3D c;
  std::memset(&c, 0, sizeof c);
  const auto node = a.handle<CUgraphNode>(&api::GetCopyNodeRecord::node);
  if (const auto pageable = PageableNode::of(a.driver(), node))
    return a.answer(CUDA_SUCCESS, {.token = pageable->call->token, .bytes = 0}, std::span<const std::uint64_t>());
  const CUresult result = a.call(node, &c);
  if (result != CUDA_SUCCESS) return result;
  Objects& objects = a.session().objects;
  const auto address = [](CUmemorytype type, const void* host, CUdeviceptr device) {
    return type == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uint64_t>(host) : device;
  };
  const auto id = [&](CUmemorytype type, CUarray array) {
    return type == CU_MEMORYTYPE_ARRAY ? objects.id_of(api::Handle::Array, array) : 0;
  };
  const api::CopyNode copy{.to = {.array = id(c.dstMemoryType, c.dstArray),
                                  .x = c.dstXInBytes,
                                  .y = c.dstY,
                                  .z = c.dstZ,
                                  .address = address(c.dstMemoryType, c.dstHost, c.dstDevice),
                                  .pitch = c.dstPitch,
                                  .rows = c.dstHeight},
                           .from = {.array = id(c.srcMemoryType, c.srcArray),
                                    .x = c.srcXInBytes,
                                    .y = c.srcY,
                                    .z = c.srcZ,
                                    .address = address(c.srcMemoryType, c.srcHost, c.srcDevice),
                                    .pitch = c.srcPitch,
                                    .rows = c.srcHeight},
                           .width = c.WidthInBytes,
                           .height = c.Height,
                           .depth = c.Depth,
                           .to_type = static_cast<std::uint64_t>(c.dstMemoryType),
                           .from_type = static_cast<std::uint64_t>(c.srcMemoryType)};
  return a.answer(result, {.token = 0, .bytes = 0}, std::span(&copy, 1));
}

CUresult cuGraphAddHostNode(call_of::cuGraphAddHostNode& a) {
  using R = api::AddHostNodeRecord;
  return add_node(a, &R::graph, &R::dependencies, [&](auto... p) {
    return give_function(a.request, a.record.token, a.handle<CUgraph>(&R::graph),
                         [&](const CUDA_HOST_NODE_PARAMS* params) { return a.call(p..., params); });
  });
}

CUresult cuGraphHostNodeSetParams(call_of::cuGraphHostNodeSetParams& a) {
  const auto node = a.handle<CUgraphNode>(&api::SetHostNodeRecord::node);
  return give_function(a.request, a.record.token, graph_of(a.request, a.record.node),
                       [&](const CUDA_HOST_NODE_PARAMS* params) { return a.call(node, params); });
}

CUresult cuGraphExecHostNodeSetParams(call_of::cuGraphExecHostNodeSetParams& a) {
  using R = api::ExecHostNodeRecord;
  const auto exec = a.handle<CUgraphExec>(&R::exec);
  const auto node = a.handle<CUgraphNode>(&R::node);
  return give_function(a.request, a.record.token, nullptr,
                       [&](const CUDA_HOST_NODE_PARAMS* params) { return a.call(exec, node, params); });
}

// A node whose function the driver did not get from the worker has no HostCall.
CUresult cuGraphHostNodeGetParams(call_of::cuGraphHostNodeGetParams& a) {
  CUDA_HOST_NODE_PARAMS params{};
  const CUresult result = a.call(a.handle<CUgraphNode>(&api::GetHostNodeRecord::node), &params);
  if (result != CUDA_SUCCESS) return result;
  if (params.fn != &HostCall::run_again) return CUDA_ERROR_INVALID_VALUE;
  return a.answer(result, {.token = static_cast<const HostCall*>(params.userData)->token});
}

CUresult cuGraphAddNode_v2(call_of::cuGraphAddNode_v2& a) {
  using R = api::AddConditionalNodeRecord;
  const auto beside = a.session().making();
  if (!a.session().graphs.conditionals.has(a.record.handle) || a.record.bodies > api::max_bodies)
    return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params;
  std::memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.handle = a.record.handle;
  params.conditional.type = static_cast<CUgraphConditionalNodeType>(a.record.type);
  params.conditional.size = a.record.bodies;
  params.conditional.ctx = context_of(a.request);
  CUgraphNode node = nullptr;
  const auto* const nodes = reinterpret_cast<const CUgraphNode*>(a.behind(&R::dependencies));
  const CUresult result = a.call(&node, a.handle<CUgraph>(&R::graph), nodes, nullptr,
                                 static_cast<std::size_t>(a.record.dependencies), &params);
  if (result != CUDA_SUCCESS) return result;
  const std::uint64_t id = found_node(a.request, node, a.record.graph);
  std::vector<std::uint64_t> bodies;
  for (unsigned i = 0; i < a.record.bodies && params.conditional.phGraph_out != nullptr; ++i)
    bodies.push_back(a.session().objects.put_found(api::Handle::Graph, params.conditional.phGraph_out[i],
                                                   a.request.place(api::Handle::Graph, id)));
  return a.answer(result, {.node = id, .bytes = 0}, bodies);
}

}  // namespace host::calls
