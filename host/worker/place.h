// Sets a worker's VM control group, process session, priority and OOM score. The worker calls it before anything else.
#pragma once

#include <string>

#include "host/worker/options.h"

namespace host::worker {

// Returns "" on success, else one sentence. Precondition: the worker still has the rights with which it was started.
[[nodiscard]] std::string take_place(const Options& options);

}  // namespace host::worker
