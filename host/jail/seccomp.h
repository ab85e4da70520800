// The layer that limits system calls. It is applied last, after the driver's start and before the worker reads the
// first guest byte. The layer binds every thread of the process (TSYNC), including the driver's threads.
// seccomp_policy.h has the policy.
#pragma once

#include <cstddef>

#include "host/jail/ioctls.h"
#include "host/jail/layer.h"

namespace host::jail {

// `requests`: the driver reaches its hardware through device files, so it may open these files and send these requests.
// Landlock keeps other files closed. `movable_bytes`: the only size of mapping that may be moved; 0: none. A mapping
// that grows could reach pages of other sessions in the shared file. `listener`: non-null for a client of MPS, whose
// connect() calls then wait for an answer through `listener`. The caller owns the descriptor. If the result is -1, the
// kernel gives no listener, and connect() is refused as for all workers.
Result apply_seccomp(Requests requests, std::size_t movable_bytes, int* listener = nullptr);

// Returns whether this process's filter allows only the listed requests.
bool list_in_force();

}  // namespace host::jail
