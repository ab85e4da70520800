// Reads a file of the program. The worker cannot reach the guest's files.
#pragma once

#include <vector>

#include "ring/api/cuda.h"

namespace guest {

// Returns the file's bytes and a NUL, which terminates PTX text. An empty result means that reading failed; `error`
// then has the reason.
std::vector<char> file_bytes(const char* path, CUresult& error);

}  // namespace guest
