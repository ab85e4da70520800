// A PTX text before linking: the names that the text defines and needs. The linker calls of the driver use it
// (host/simgpu/api/module/link.cc).
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

namespace simgpu {

struct Relocatable {
  CUresult code = CUDA_SUCCESS;
  std::string log;  // reason of the failure: "line 12: ..."

  std::vector<std::string> defined;  // visible to other texts
  std::vector<std::string> weak;     // visible to other texts, and duplicate definitions are allowed
  std::vector<std::string> needed;   // names that the text uses and another text must define, without duplicates
};

// Compiles the text to find all its errors except link errors. The function needs no device.
Relocatable examine(const std::string& text);

}  // namespace simgpu
