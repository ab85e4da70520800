// Extracts the PTX texts of an image, which is a fat binary or a PTX text.
//
// Trust: a program, or a guest through its worker, wrote the image. Each size is checked against its container. Only
// the outermost length is taken from the image, since the driver API passes none.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace simgpu {

struct ImageTexts {
  CUresult code = CUDA_SUCCESS;
  std::vector<std::string> ptx;  // several texts come from relocatable device code and must be linked
  std::string log;               // one sentence per line: the parts that were skipped, or why there is no PTX
};

// `image` has the forms that cuModuleLoadData accepts: wrapper, container, cubin, linked image, or NUL-terminated PTX.
// Returns NO_BINARY_FOR_GPU if this device can run no part of a valid image, and INVALID_IMAGE for an unknown form.
ImageTexts read_image(const void* image);

// Returns true if the text begins with a PTX version after blanks and comments.
bool is_ptx(const char* text);

// Reads a container (header and entries) of exactly `bytes`. Selects the newest PTX that is not newer than device_sm.
ImageTexts read_container(std::span<const std::byte> bytes);

}  // namespace simgpu
