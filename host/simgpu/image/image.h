// Extracts the PTX texts of an image: a fat binary's, or the text itself.
//
// Trust: a program, or a guest through its worker, wrote the image. Each size is checked against its container. Only
// the outermost length comes from the image, since the driver API passes none.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace simgpu {

struct ImageTexts {
  CUresult code = CUDA_SUCCESS;
  std::vector<std::string> ptx;  // several texts (relocatable device code) must be linked
  std::string log;               // one sentence per line: skipped parts, or why there is no PTX
};

// `image` as for cuModuleLoadData: wrapper, container, cubin, linked image, or NUL-terminated PTX. NO_BINARY_FOR_GPU:
// valid, but nothing that this device can run. INVALID_IMAGE: unknown form.
ImageTexts read_image(const void* image);

// True if the text begins with a PTX version after blanks and comments.
bool is_ptx(const char* text);

// Reads a container (header and entries) of exactly `bytes`. Picks the newest PTX that is not newer than device_sm.
ImageTexts read_container(std::span<const std::byte> bytes);

}  // namespace simgpu
