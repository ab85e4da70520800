// Extracts the PTX texts from a linker input: text, fat binaries, and host objects and libraries that contain fat
// binaries.
//
// Trust: as in image.h, except that linker calls pass a length. Nothing beyond that length is read.
#pragma once

#include <cstddef>
#include <span>

#include "host/simgpu/image/image.h"

namespace simgpu {

// The caller has checked that `type` is a known type. LTO-IR and NVVM contain no PTX, so they yield no texts.
ImageTexts read_link_input(CUjitInputType type, std::span<const std::byte> data);

}  // namespace simgpu
