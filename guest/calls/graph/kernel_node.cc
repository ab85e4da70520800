// Graph nodes that launch kernels. Their calls are handwritten because of the kernel's parameters, like launches.
#include "guest/base/switches.h"
#include "guest/calls/attributes.h"
#include "guest/calls/calls.h"
#include "guest/calls/graph/nodes.h"
#include "guest/calls/launch/packed_parameters.h"

namespace guest::calls {
namespace {

struct KernelArguments {
  std::vector<std::uint64_t> block;
  std::vector<void*> each;
  std::size_t bytes = 0;
  void* extra[5] = {};
};
KeptArrays<KernelArguments>& kernel_arguments() {
  static auto* const kept = new KeptArrays<KernelArguments>;
  return *kept;
}

// Translates the node's parameters into `record`, and copies the kernel's parameters into `packed`. The caller keeps
// `packed` until the record is sent.
CUresult pack_kernel(const CUDA_KERNEL_NODE_PARAMS_v2* p, api::KernelNodeParams& record,
                     std::vector<std::byte>& packed) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const void* const handle = p->func != nullptr ? static_cast<const void*>(p->func) : p->kern;
  const Object* const function = session()->objects.find(handle, api::Handle::Function);
  if (function == nullptr || function->function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult r = pack_parameters(*function->function, p->kernelParams, p->extra, packed); r != CUDA_SUCCESS)
    return r;
  if (p->kern != nullptr && session()->objects.find(p->kern, api::Handle::Kernel) == nullptr)
    return CUDA_ERROR_INVALID_HANDLE;
  record.function = api::number_of(p->func), record.kernel = api::number_of(p->kern);
  const unsigned grid[] = {p->gridDimX, p->gridDimY, p->gridDimZ}, block[] = {p->blockDimX, p->blockDimY, p->blockDimZ};
  std::memcpy(record.grid, grid, sizeof grid);
  std::memcpy(record.block, block, sizeof block);
  record.shared = p->sharedMemBytes;
  record.param_bytes = static_cast<std::uint32_t>(packed.size());
  record.used_extra = p->extra != nullptr ? 1 : 0;
  record.pad = 0;
  return CUDA_SUCCESS;
}

// Makes sure that the guest has an object for a node's function. The driver may have derived the function from a kernel
// without a call of the program. The function then ends with the kernel, and has the kernel's parameter layout.
bool knows_function(std::uint64_t function, std::uint64_t kernel, Context* context) {
  Objects& objects = session()->objects;
  if (function == 0 || objects.find(reinterpret_cast<const void*>(function), api::Handle::Function) != nullptr)
    return true;
  Object* const found = objects.adopt(function, api::Handle::Function, context->home);
  const Object* const of = objects.find(reinterpret_cast<const void*>(kernel), api::Handle::Kernel);
  if (found == nullptr) return false;
  if (of == nullptr) return true;
  objects.give(*found, *of);
  found->function = of->function;
  return true;
}

CUDA_KERNEL_NODE_PARAMS_v2 with_kernel(const CUDA_KERNEL_NODE_PARAMS_v1& p) {
  CUDA_KERNEL_NODE_PARAMS_v2 all;
  std::memset(&all, 0, sizeof all);
  std::memcpy(&all, &p, sizeof p);
  return all;
}

}  // namespace

CUresult cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* nodes, std::size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS_v2* p) {
  Context* context = nullptr;
  if (const CUresult r = enter_for(p != nullptr && p->func == nullptr ? p->ctx : nullptr, context); r != CUDA_SUCCESS)
    return r;
  api::AddKernelNodeRecord record{};
  std::vector<std::byte> packed;
  if (const CUresult r = pack_kernel(p, record, packed); r != CUDA_SUCCESS) return r;
  return add(api::id_of::cuGraphAddKernelNode_v2, *context, record, out, graph, {nodes, count},
             {packed.data(), packed.size()});
}

CUresult cuGraphAddKernelNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* nodes, std::size_t count,
                              const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  if (p == nullptr) return calls::cuGraphAddKernelNode_v2(out, graph, nodes, count, nullptr);
  const auto all = with_kernel(*p);
  return calls::cuGraphAddKernelNode_v2(out, graph, nodes, count, &all);
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* p) {
  Context* context = nullptr;
  if (const CUresult r = enter_for(p != nullptr && p->func == nullptr ? p->ctx : nullptr, context); r != CUDA_SUCCESS)
    return r;
  if (node_object(node) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  api::SetKernelNodeRecord record{};
  std::vector<std::byte> packed;
  if (const CUresult r = pack_kernel(p, record, packed); r != CUDA_SUCCESS) return r;
  record.node = api::number_of(node);
  const Part parameters{packed.data(), packed.size()};
  return cross({.call = api::id_of::cuGraphKernelNodeSetParams_v2, .context = *context}, record, {&parameters, 1})
      .result;
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  if (p == nullptr) return calls::cuGraphKernelNodeSetParams_v2(node, nullptr);
  const auto all = with_kernel(*p);
  return calls::cuGraphKernelNodeSetParams_v2(node, &all);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* p) {
  Context* context = nullptr;
  if (const CUresult r = enter_for(p != nullptr && p->func == nullptr ? p->ctx : nullptr, context); r != CUDA_SUCCESS)
    return r;
  Object* const object = exec_object(exec);
  if (object == nullptr || node_object(node) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  api::ExecKernelNodeRecord record{};
  std::vector<std::byte> packed;
  if (const CUresult r = pack_kernel(p, record, packed); r != CUDA_SUCCESS) return r;
  record.exec = api::number_of(exec), record.node = api::number_of(node);
  if (!wait_for_object(*object, this_channel())) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  AcceptedNodes& accepted = session()->graphs.accepted;
  const bool is_known = switches().known_accepted && accepted.has(record, context->number);
  const Part parameters{packed.data(), packed.size()};
  const Sent sent = cross({.call = api::id_of::cuGraphExecKernelNodeSetParams_v2,
                           .context = *context,
                           .way = is_known ? api::Way::Posted : api::Way::Waited},
                          record, {&parameters, 1});
  if (sent.use.position != 0) remember(*object, sent.use);
  if (!is_known && sent.result == CUDA_SUCCESS) accepted.add(record, context->number);
  return sent.result;
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  if (p == nullptr) return calls::cuGraphExecKernelNodeSetParams_v2(exec, node, nullptr);
  const auto all = with_kernel(*p);
  return calls::cuGraphExecKernelNodeSetParams_v2(exec, node, &all);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2* p) {
  Context* context = nullptr;
  if (const CUresult r = enter_without_context(context); r != CUDA_SUCCESS) return r;
  const Object* const object = node_object(node);
  if (object == nullptr || p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  api::KernelNodeReply reply{};
  std::vector<std::uint64_t> block;
  const auto read = [&](CUresult result, ring::SharedReader& r) {
    if (result != CUDA_SUCCESS) return;
    reply = r.read<api::KernelNodeReply>();
    for (std::uint64_t i = 0; r.ok() && i < reply.bytes / sizeof(std::uint64_t); ++i) block.push_back(r.slot());
  };
  const api::GetNodeRecord record{.node = api::number_of(node)};
  const Sent sent = cross({.call = api::id_of::cuGraphKernelNodeGetParams_v2, .context = *context}, record, {}, read);
  if (sent.result != CUDA_SUCCESS) return sent.result;
  if (reply.param_bytes > block.size() * sizeof(std::uint64_t)) return lose_to_unsound_reply();
  if (!knows_function(reply.function, reply.kernel, context)) return lose_to_unsound_reply();
  KernelArguments& kept = kernel_arguments().renew(*object);
  kept.block = std::move(block), kept.bytes = reply.param_bytes;
  auto* const bytes = reinterpret_cast<std::byte*>(kept.block.data());
  std::memset(p, 0, sizeof *p);
  p->func = reinterpret_cast<CUfunction>(reply.function);
  p->kern = reinterpret_cast<CUkernel>(reply.kernel);
  p->gridDimX = reply.grid[0], p->gridDimY = reply.grid[1], p->gridDimZ = reply.grid[2];
  p->blockDimX = reply.block[0], p->blockDimY = reply.block[1], p->blockDimZ = reply.block[2];
  p->sharedMemBytes = reply.shared;
  if (reply.used_extra != 0) {
    void* const extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, &kept.bytes,
                           CU_LAUNCH_PARAM_END};
    std::memcpy(kept.extra, extra, sizeof extra);
    p->extra = kept.extra;
    return CUDA_SUCCESS;
  }
  const Object* const function = session()->objects.find(
      reinterpret_cast<const void*>(reply.function != 0 ? reply.function : reply.kernel), api::Handle::Function);
  if (function != nullptr && function->function != nullptr)
    for (const api::ParameterPlace& place : function->function->params)
      kept.each.push_back(place.offset + place.size <= kept.bytes ? bytes + place.offset : nullptr);
  p->kernelParams = kept.each.empty() ? nullptr : kept.each.data();
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* p) {
  CUDA_KERNEL_NODE_PARAMS_v2 all;
  const CUresult result = calls::cuGraphKernelNodeGetParams_v2(node, p == nullptr ? nullptr : &all);
  if (result == CUDA_SUCCESS) *p = first_of<CUDA_KERNEL_NODE_PARAMS_v1>(all);
  return result;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID tag, const CUkernelNodeAttrValue* value) {
  Context* context = nullptr;
  if (const CUresult r = enter_without_context(context); r != CUDA_SUCCESS) return r;
  if (node_object(node) == nullptr || value == nullptr || !api::is_streams(tag)) return CUDA_ERROR_INVALID_VALUE;
  const api::SetNodeAttributeRecord record{.node = api::number_of(node), .attributes = 0, .pad = 0};
  const Crossing crossing{.call = api::id_of::cuGraphKernelNodeSetAttribute, .context = *context};
  return set_attribute(crossing, record, tag, *value);
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID tag, CUkernelNodeAttrValue* value) {
  Context* context = nullptr;
  if (const CUresult r = enter_without_context(context); r != CUDA_SUCCESS) return r;
  if (node_object(node) == nullptr || value == nullptr || !api::is_streams(tag)) return CUDA_ERROR_INVALID_VALUE;
  const api::GetNodeAttributeRecord record{.node = api::number_of(node), .tag = 0, .pad = 0};
  const Crossing crossing{.call = api::id_of::cuGraphKernelNodeGetAttribute, .context = *context};
  return get_attribute(crossing, record, tag, value);
}

}  // namespace guest::calls
