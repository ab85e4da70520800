// A call of a session that has mirrors of managed variables (host/session/memory/mirrors.h): what the program has written goes
// up before the GPU gets something to do, and what the GPU has written comes down before the guest can see that it has.
#pragma once

#include "host/untrusted/marshal/request.h"
#include "ring/api/known_ids.h"

namespace host {

// The synchronous copies and fills are done when they return, but for a copy from pageable memory, whose last bytes may
// still be on their way to the variable. So the worker waits for the NULL stream, which they use. A fault is the call's.
inline CUresult finish_copy(const Request& r) {
  const CUresult result = r.session.driver.cuStreamSynchronize(r.per_thread() ? CU_STREAM_PER_THREAD : nullptr);
  return is_fault(result) ? result : CUDA_SUCCESS;
}

inline CUresult call_mirrored(Handler handler, Request& r) {
  const api::Manner manner = api::manner_of(r.header.call);
  Mirrors& mirrors = r.session.memory.mirrors;
  if (manner.submits) mirrors.up();
  CUresult result = handler(r);
  const bool copies_now = manner.submits && manner.order == api::Order::Null;  // also where its record is posted
  if (result == CUDA_SUCCESS && copies_now) result = finish_copy(r);
  const bool waits = copies_now || (r.header.flags & ring::flag_wants_reply) != 0;
  if (result == CUDA_SUCCESS && waits && !r.session.protocol.broken.load(std::memory_order_relaxed)) mirrors.down();
  return result;
}

}  // namespace host
