// A worker's place among the processes of the machine: its VM's control group, its own process session, its priority,
// and its rank when the kernel must free memory. The worker takes it before anything else.
#pragma once

#include <string>

#include "host/worker/options.h"

namespace host::worker {

// Returns "" on success, else one sentence. Preconditions: the worker still has the rights that it was started with.
std::string take_place(const Options& options);

}  // namespace host::worker
