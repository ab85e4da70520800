// The layer that limits the system calls. Applied last: after the driver is up, before the first guest byte. It binds
// every thread the process has (TSYNC), the driver's own included. The policy is seccomp_policy.h.
#pragma once

#include <cstddef>

#include "host/jail/ioctls.h"
#include "host/jail/layer.h"

namespace host::jail {

// `requests`: the driver reaches its hardware through device files, so it may open them, and make these requests of
// them; Landlock keeps all others closed. `movable_bytes`: the one size of mapping that it may move, none where 0. A
// mapping that could grow would reach the pages of the shared file behind it, which are other sessions'. `listener`: not
// null for a client of MPS, whose every connect() then waits for the answer of whoever listens there. It is the caller's;
// -1 where the kernel gives none, and connect() is refused as it is to all others.
Result apply_seccomp(Requests requests, std::size_t movable_bytes, int* listener = nullptr);

// True if a filter that lets only listed requests through binds this process.
bool list_in_force();

}  // namespace host::jail
