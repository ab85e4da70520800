// Checks the flags of a context, and adapts them as the driver does.
#pragma once

#include "ring/api/cuda.h"

namespace guest {

// Returns whether the flags name at most one way of waiting, and no unknown flag.
inline bool valid_flags(unsigned flags) {
  const unsigned way = flags & CU_CTX_SCHED_MASK;
  return (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0 && (way & (way - 1)) == 0;
}

// Returns the flags that cuCtxGetFlags reports for a context created with `flags`. The driver reports a user-triggered
// core dump as a plain core dump.
inline unsigned created_flags(unsigned flags) {
  constexpr unsigned dumps = CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE;
  return (flags & dumps) == 0 ? flags : (flags & ~dumps) | CU_CTX_COREDUMP_ENABLE;
}
// The flags that cuCtxSetFlags can change.
inline unsigned changed_flags(unsigned flags) {
  return flags & (CU_CTX_SCHED_MASK | CU_CTX_LMEM_RESIZE_TO_MAX | CU_CTX_SYNC_MEMOPS);
}

}  // namespace guest
