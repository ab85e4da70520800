// Reads a file of the program. The worker cannot reach the guest's files.
#pragma once

#include <vector>

#include "ring/api/cuda.h"

namespace guest {

// The file's bytes and a NUL, which ends PTX text. Empty: reading failed, and `error` says why.
std::vector<char> file_bytes(const char* path, CUresult& error);

}  // namespace guest
