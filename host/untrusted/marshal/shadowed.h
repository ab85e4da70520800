// Runs a call of a session with shadow copies of managed variables (host/session/memory/shadow_copies.h). This function
// copies the program's writes to the driver before the GPU gets work, and copies the GPU's writes back before the guest
// can see that the work is done.
#pragma once

#include "host/untrusted/marshal/request.h"
#include "ring/api/known_ids.h"

namespace host {

// Synchronous copies and fills are complete when they return, except copies from pageable memory, whose last bytes may
// still be in transit. The worker therefore waits for the NULL stream, which these copies use. A fault becomes the
// call's result.
inline CUresult finish_copy(const Request& r) {
  const CUresult result = r.session.driver.cuStreamSynchronize(r.per_thread() ? CU_STREAM_PER_THREAD : nullptr);
  return is_fault(result) ? result : CUDA_SUCCESS;
}

inline CUresult call_shadowed(Handler handler, Request& r) {
  const api::Manner manner = api::manner_of(r.header.call);
  ShadowCopies& shadow_copies = r.session.memory.shadow_copies;
  if (manner.submits) shadow_copies.up();
  CUresult result = handler(r);
  const bool copies_now = manner.submits && manner.order == api::Order::Null;  // true even if the record is posted
  if (result == CUDA_SUCCESS && copies_now) result = finish_copy(r);
  const bool waits = copies_now || (r.header.flags & ring::flag_wants_reply) != 0;
  if (result == CUDA_SUCCESS && waits && !r.session.protocol.broken.load(std::memory_order_relaxed))
    shadow_copies.down();
  return result;
}

}  // namespace host
