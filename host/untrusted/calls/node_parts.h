// What several calls that make nodes share: a copy as the driver takes it, and a function for a node.
#pragma once

#include <cstring>

#include "host/untrusted/calls/copy_side.h"
#include "host/untrusted/host_calls.h"
#include "host/untrusted/taken.h"

namespace host::calls {

template <class R>
CUDA_MEMCPY3D copy_of(const Taken<R>& t) {
  using Record = api::CopyTexelsRecord;
  using api::TexelsSide;
  const Record& record = t.record;
  const auto array = [&](TexelsSide Record::*side) {
    return t.template handle<CUarray>(api::field::of(side, &TexelsSide::array));
  };
  CUDA_MEMCPY3D copy;
  std::memset(&copy, 0, sizeof copy);
  set_sides(copy, side_of(t.session(), record.to.address, array(&Record::to)),
            side_of(t.session(), record.from.address, array(&Record::from)));
  copy.dstPitch = record.to.pitch, copy.dstHeight = record.to.rows;
  copy.srcPitch = record.from.pitch, copy.srcHeight = record.from.rows;
  copy.dstXInBytes = record.to.x, copy.dstY = record.to.y, copy.dstZ = record.to.z;
  copy.srcXInBytes = record.from.x, copy.srcY = record.from.y, copy.srcZ = record.from.z;
  copy.WidthInBytes = record.width, copy.Height = record.height, copy.Depth = record.depth;
  return copy;
}

inline CUcontext context_of(const Request& r) { return r.session.contexts.find(ring::context_of(r.header.flags)); }

// The guest's token is not used: it ends.
inline void forget_token(const Session& session, std::uint64_t token) {
  if (session.host_calls) session.host_calls->forget(token);
}

// A function for a node. The driver's user object that keeps it goes to the graph with this id; without one the function stays as
// long as the session, for an executable's own functions end with nothing that the driver tells of.
template <class Give>
CUresult give_function(const Request& r, std::uint64_t token, std::uint64_t graph, Give give, bool copies = false) {
  const Driver& driver = r.session.driver;
  auto* const call = new HostCall{.calls = r.session.host_calls, .token = token, .object = 0, .copies = copies};
  CUuserObject keeper = nullptr;
  CUresult result = driver.cuUserObjectCreate(&keeper, call, &HostCall::end, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  if (result != CUDA_SUCCESS) return HostCall::end(call), result;
  const CUDA_HOST_NODE_PARAMS params{.fn = &HostCall::run_again, .userData = call};
  result = give(&params);
  const auto kept_by = static_cast<CUgraph>(r.session.objects.find(graph, api::Handle::Graph));
  if (result == CUDA_SUCCESS && kept_by != nullptr)
    driver.cuGraphRetainUserObject(kept_by, keeper, 1, CU_GRAPH_USER_OBJECT_MOVE);
  if (result != CUDA_SUCCESS) driver.cuUserObjectRelease(keeper, 1);
  return result;
}

}  // namespace host::calls
