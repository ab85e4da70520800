// Finds the libcuda.so.1 that the workers load. The broker does not load it: a driver in the privileged process would
// be a risk for every VM.
#pragma once

#include <string>

namespace host::broker {

// `wanted`: "auto" (the system's), "sim" (the simulated GPU that belongs to the ivgpud in `own_folder`) or a path.
// Empty on failure, and `error` is one sentence.
std::string find_gpu_library(const std::string& wanted, const std::string& own_folder, std::string& error);

}  // namespace host::broker
