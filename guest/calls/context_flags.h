// The flags of a context, as it is created and as they are changed.
#pragma once

#include "ring/api/cuda.h"

namespace guest {

// At most one way of waiting, and no flag that is none.
inline bool valid_flags(unsigned flags) {
  const unsigned way = flags & CU_CTX_SCHED_MASK;
  return (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0 && (way & (way - 1)) == 0;
}

// What cuCtxGetFlags says of a context created with these: a core dump that users trigger is a core dump.
inline unsigned created_flags(unsigned flags) {
  constexpr unsigned dumps = CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE;
  return (flags & dumps) == 0 ? flags : (flags & ~dumps) | CU_CTX_COREDUMP_ENABLE;
}
// What of these cuCtxSetFlags changes.
inline unsigned changed_flags(unsigned flags) {
  return flags & (CU_CTX_SCHED_MASK | CU_CTX_LMEM_RESIZE_TO_MAX | CU_CTX_SYNC_MEMOPS);
}

}  // namespace guest
