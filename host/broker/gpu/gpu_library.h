// Finds the libcuda.so.1 that the workers load. The broker does not load it: a driver in the privileged process would
// be a risk for every VM.
#pragma once

#include <string>

#include "host/base/result.h"

namespace host::broker {

// `wanted`: "auto" (the system's), "sim" (the simulated GPU that belongs to the ivgpud in `own_folder`) or a path.
// The error is one sentence.
Result<std::string> find_gpu_library(const std::string& wanted, const std::string& own_folder);

}  // namespace host::broker
