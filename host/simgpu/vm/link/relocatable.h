// A PTX text before linking: the names that it defines and needs. The driver's linker calls
// (host/simgpu/api/module/link.cc) use it.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

namespace simgpu {

struct Relocatable {
  CUresult code = CUDA_SUCCESS;
  std::string log;  // why it failed: "line 12: ..."

  std::vector<std::string> defined;  // visible to other texts
  std::vector<std::string> weak;     // same, but duplicate definitions are allowed
  std::vector<std::string> needed;   // used here and defined elsewhere, without duplicates
};

// Compiles the text, so it finds all errors except link errors. Needs no device.
Relocatable examine(const std::string& text);

}  // namespace simgpu
