// Graph nodes that copy. Their calls are handwritten, like copies of rows. Copies of the program's own memory cross as
// SESSION records (guest/calls/copy/pageable_copy.h).
#include "guest/calls/calls.h"
#include "guest/calls/copy/judge_copy.h"
#include "guest/calls/copy/pageable_copy.h"
#include "guest/calls/graph/nodes.h"
#include "guest/session/callbacks.h"

namespace guest::calls {
namespace {

template <class Send>
CUresult with_pageable(const CUDA_MEMCPY3D& copy, api::PageableCopyRecord& record, Send send) {
  const CUresult described = describe_pageable(copy, record);
  return described == CUDA_SUCCESS ? send() : described;
}

}  // namespace

CUresult cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* nodes, std::size_t count,
                              const CUDA_MEMCPY3D* p, CUcontext in) {
  Context* context = nullptr;
  if (const CUresult r = enter_for(in, context); r != CUDA_SUCCESS) return r;
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (is_pageable(*p)) {
    api::AddPageableRecord record{};
    if (graph_object(graph) == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return with_pageable(*p, record, [&] {
      const Dependencies dependencies{nodes, count};
      if (!dependencies.known()) {
        session()->callbacks().end(record.token);
        return CUDA_ERROR_INVALID_VALUE;
      }
      return add_by(record, out, graph, dependencies, {}, [&](std::span<const Part> parts, auto read) {
        return send_with_token(api::id_of::add_pageable, *context, record, read, parts);
      });
    });
  }
  api::AddCopyNodeRecord record{};
  if (const CUresult r = describe_copy(*p, record); r != CUDA_SUCCESS) return r;
  return add(api::id_of::cuGraphAddMemcpyNode, *context, record, out, graph, {nodes, count});
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* p) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  if (p == nullptr || node_object(node) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (is_pageable(*p)) {
    api::SetPageableRecord record{};
    record.node = api::number_of(node);
    return with_pageable(*p, record,
                         [&] { return send_with_token(api::id_of::set_pageable, *context, record).result; });
  }
  api::SetCopyNodeRecord record{};
  if (const CUresult r = describe_copy(*p, record); r != CUDA_SUCCESS) return r;
  record.node = api::number_of(node);
  return cross({.call = api::id_of::cuGraphMemcpyNodeSetParams, .context = *context}, record).result;
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* p, CUcontext in) {
  Context* context = nullptr;
  if (const CUresult r = enter_for(in, context); r != CUDA_SUCCESS) return r;
  Object* const object = exec_object(exec);
  if (p == nullptr || object == nullptr || node_object(node) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (is_pageable(*p)) {
    if (!wait_for_object(*object, this_channel())) return CUDA_ERROR_DEVICE_UNAVAILABLE;
    api::ExecPageableRecord record{};
    record.exec = api::number_of(exec), record.node = api::number_of(node);
    return with_pageable(*p, record,
                         [&] { return send_with_token(api::id_of::exec_set_pageable, *context, record).result; });
  }
  api::ExecCopyNodeRecord record{};
  if (const CUresult r = describe_copy(*p, record); r != CUDA_SUCCESS) return r;
  record.exec = api::number_of(exec), record.node = api::number_of(node);
  if (!wait_for_object(*object, this_channel())) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  return cross({.call = api::id_of::cuGraphExecMemcpyNodeSetParams, .context = *context}, record).result;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* p) {
  Context* context = nullptr;
  if (const CUresult r = enter_without_context(context); r != CUDA_SUCCESS) return r;
  if (p == nullptr || node_object(node) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  api::CopyNode copy{};
  api::CopyNodeReply reply{};
  const auto read = [&](CUresult result, ring::SharedReader& r) {
    if (result != CUDA_SUCCESS) return;
    reply = r.read<api::CopyNodeReply>();
    if (reply.bytes == sizeof copy) copy = r.read<api::CopyNode>();
  };
  const api::GetCopyNodeRecord record{.node = api::number_of(node)};
  const Sent sent = cross({.call = api::id_of::cuGraphMemcpyNodeGetParams, .context = *context}, record, {}, read);
  if (sent.result != CUDA_SUCCESS) return sent.result;
  if (reply.token != 0) {
    const auto callback = session()->callbacks().find(reply.token);
    if (!callback || callback->ended != PageableCopy::end) return lose_to_unsound_reply();
    *p = static_cast<const PageableCopy*>(callback->argument)->as_given;
    return CUDA_SUCCESS;
  }
  std::memset(p, 0, sizeof *p);
  const api::TexelsSide &to = copy.to, &from = copy.from;
  p->dstMemoryType = static_cast<CUmemorytype>(copy.to_type),
  p->srcMemoryType = static_cast<CUmemorytype>(copy.from_type);
  p->dstXInBytes = to.x, p->dstY = to.y, p->dstZ = to.z, p->dstPitch = to.pitch, p->dstHeight = to.rows;
  p->srcXInBytes = from.x, p->srcY = from.y, p->srcZ = from.z, p->srcPitch = from.pitch, p->srcHeight = from.rows;
  p->dstArray = reinterpret_cast<CUarray>(to.array), p->srcArray = reinterpret_cast<CUarray>(from.array);
  if (copy.to_type == CU_MEMORYTYPE_HOST)
    p->dstHost = reinterpret_cast<void*>(to.address);
  else
    p->dstDevice = to.address;
  if (copy.from_type == CU_MEMORYTYPE_HOST)
    p->srcHost = reinterpret_cast<const void*>(from.address);
  else
    p->srcDevice = from.address;
  p->WidthInBytes = copy.width, p->Height = copy.height, p->Depth = copy.depth;
  return CUDA_SUCCESS;
}

}  // namespace guest::calls
