// The runnable part of an image: the PTX texts of a fat binary, or the text itself.
//
// Trust: an image is bytes that a program (or, through a worker, a guest) wrote. Every size in it is checked against
// its container before it is used; only the outermost length is the image's own word, since the driver API passes none.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace simgpu {

struct ImageTexts {
  CUresult code = CUDA_SUCCESS;
  std::vector<std::string> ptx;  // to be linked together when there are several (relocatable device code)
  std::string log;               // sentences, a line each: parts that were passed over, or the reason why there is none
};

// As cuModuleLoadData gets it: wrapper, container, cubin, the linker's image, or PTX as NUL-terminated text.
// NO_BINARY_FOR_GPU: well formed, but nothing this device can run. INVALID_IMAGE: none of the forms.
ImageTexts read_image(const void* image);

// PTX begins with its version, behind blanks and comments. A text that does not is no PTX at all.
bool is_ptx(const char* text);

// One container (header and entries) that is exactly as long as `bytes`. The newest PTX that this device may run: none that
// is for a newer one than device_sm.
ImageTexts read_container(std::span<const std::byte> bytes);

}  // namespace simgpu
