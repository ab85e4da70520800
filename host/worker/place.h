// Sets a worker's control group (the group of its VM), process session, priority and OOM score. The worker calls
// take_place() before anything else.
#pragma once

#include <string>

#include "host/worker/options.h"

namespace host::worker {

// Returns "" on success, else one sentence. Precondition: the worker still has the privileges with which it was
// started.
[[nodiscard]] std::string take_place(const Options& options);

}  // namespace host::worker
