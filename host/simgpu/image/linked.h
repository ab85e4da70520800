// What the simulated GPU's linker makes: PTX texts that belong together, in one image.
//
// Its form is the simulated GPU's own. It is an ELF file, as a real driver's is, so that whoever has to find its end or
// looks at its first bytes needs no new knowledge; but it is for no machine, and the unused bytes of its identification
// hold a magic word. Each section after the first, which ELF leaves empty, is a PTX text with its NUL.
//
// Trust: an image that comes back is bytes that a program (or, through a worker, a guest) wrote, like any other image.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "host/simgpu/image/image.h"

namespace simgpu {

inline constexpr std::size_t max_linked = 0xfeff;  // texts: what an ELF header can count

std::vector<std::byte> write_linked(std::span<const std::string> texts);

// By the header of an ELF file.
bool is_linked(const void* elf);
ImageTexts read_linked(const void* elf);

}  // namespace simgpu
