// The layer that limits system calls. It is applied last, after the driver's start and before the first guest byte. It
// binds every thread of the process (TSYNC), including the driver's. seccomp_policy.h has the policy.
#pragma once

#include <cstddef>

#include "host/jail/ioctls.h"
#include "host/jail/layer.h"

namespace host::jail {

// `requests`: the driver reaches its hardware through device files, so it may open them and send these requests.
// Landlock keeps other files closed. `movable_bytes`: the only size of mapping that may be moved; 0: none. A growing
// mapping would reach other sessions' pages of the shared file. `listener`: non-null for a client of MPS, whose
// connect() calls then wait for an answer through it. The caller owns it. If it is -1, the kernel gives no listener,
// and connect() is refused as to all workers.
Result apply_seccomp(Requests requests, std::size_t movable_bytes, int* listener = nullptr);

// True if this process's filter allows only the listed requests.
bool list_in_force();

}  // namespace host::jail
