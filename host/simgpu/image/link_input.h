// The PTX texts in what a program gives to the linker: text, fat binaries, and host objects and libraries with fat
// binaries in them.
//
// Trust: as image.h, but the linker's calls pass a length, and nothing behind it is read.
#pragma once

#include <cstddef>
#include <span>

#include "host/simgpu/image/image.h"

namespace simgpu {

// `type`: one that a driver knows. LTO-IR and NVVM have no PTX, so nothing is found in them.
ImageTexts read_link_input(CUjitInputType type, std::span<const std::byte> data);

}  // namespace simgpu
