// The output of the simulated GPU's linker: several PTX texts in one image.
//
// The format is private. It is an ELF file like the output of NVIDIA's linker, so that existing code finds its type and
// its end. The machine is EM_NONE, and a magic word fills the unused identification bytes. Each section after the empty
// first one holds a PTX text with its terminating NUL.
//
// Trust: a linked image that a program passes back is as untrusted as any other image.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "host/simgpu/image/image.h"

namespace simgpu {

// number of texts; the section count in an ELF header sets this limit
inline constexpr std::size_t max_linked = 0xfeff;

std::vector<std::byte> write_linked(std::span<const std::string> texts);

// Returns true if the ELF header is that of a linked image.
bool is_linked(const void* elf);
ImageTexts read_linked(const void* elf);

}  // namespace simgpu
