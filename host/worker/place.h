// A worker's place among the processes of the machine, which it takes before anything else: its VM's control group, a
// session and a priority of its own, and its rank for the kernel when memory is short.
#pragma once

#include <string>

#include "host/worker/options.h"

namespace host::worker {

// "" when it is taken, else one sentence. Precondition: the worker still has the rights that it was started with.
std::string take_place(const Options& options);

}  // namespace host::worker
