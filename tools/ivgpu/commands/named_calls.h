// Finds the calls that a program may make, without running it: their names in its file and in the shared libraries that
// the loader would load.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tools/ivgpu/support/install.h"

namespace ivgpu {

struct Libraries {
  std::vector<std::filesystem::path> found;  // without libcuda.so, which contains the name of every call
  std::vector<std::string> missing;          // as the program names them
};

// The libraries of an ELF file and their libraries, by the loader's search. Excludes libraries that dlopen loads later.
// Throws an Error if the loader does not run.
Libraries libraries_of(const Install& install, const std::filesystem::path& file);

// Calls `each` with every string of the file that begins with "cu" and can be a symbol: linked names and arguments of
// cuGetProcAddress. Throws an Error if the file is unreadable or not ELF.
void each_name(const std::filesystem::path& file, const std::function<void(const std::string& name)>& each);

}  // namespace ivgpu
