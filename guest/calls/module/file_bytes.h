// Reads a file of the program's. The guest reads it, since only the guest has it.
#pragma once

#include <vector>

#include "ring/api/cuda.h"

namespace guest {

// The file's bytes and a NUL, which ends PTX text. Empty: the file could not be read, and `error` says why.
std::vector<char> file_bytes(const char* path, CUresult& error);

}  // namespace guest
