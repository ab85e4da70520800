// The flags of a context, as it is created and as they are changed.
#pragma once

#include "ring/api/cuda.h"

namespace guest {

// At most one way of waiting, and no flag that is none.
inline bool valid_flags(unsigned flags) {
  const unsigned way = flags & CU_CTX_SCHED_MASK;
  return (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0 && (way & (way - 1)) == 0;
}

}  // namespace guest
