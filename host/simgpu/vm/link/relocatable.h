// A PTX text as a linker sees it before it has the other texts: the names that it defines and those that it needs. The
// driver calls of the linker (host/simgpu/api/module/link.cc) stand on this.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

namespace simgpu {

struct Relocatable {
  CUresult code = CUDA_SUCCESS;
  std::string log;  // the reason of a failure: "line 12: ..."

  std::vector<std::string> defined;  // for other texts
  std::vector<std::string> weak;     // the same, but of several definitions any one will do
  std::vector<std::string> needed;   // used here, defined in another text; each once
};

// Compiles the text, so it finds every error but those of linking. Needs no device.
Relocatable examine(const std::string& text);

}  // namespace simgpu
