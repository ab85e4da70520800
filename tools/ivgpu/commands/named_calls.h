// The calls that a program may make, from its file: the words of it, and of the shared libraries that the loader would
// give it, without running any of them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tools/ivgpu/support/install.h"

namespace ivgpu {

struct Libraries {
  std::vector<std::filesystem::path> found;  // no libcuda.so: it names every call
  std::vector<std::string> missing;          // as the program names them
};

// Those of an ELF file, and theirs, by the loader's own search. Libraries that are loaded later (dlopen) are not among
// them. An Error if the loader cannot be asked.
Libraries libraries_of(const Install& install, const std::filesystem::path& file);

// Calls `each` with every word of the file that begins with "cu" and could be a symbol: linked names, and texts with
// which it asks cuGetProcAddress. An Error if it cannot be read, or is no ELF file.
void each_name(const std::filesystem::path& file, const std::function<void(const std::string& name)>& each);

}  // namespace ivgpu
