// The output of the simulated GPU's linker: several PTX texts in one image.
//
// The format is our own. It is an ELF file like a real driver's, so that existing code finds its type and end. Its
// machine is none, and a magic word fills the unused identification bytes. Each section after the empty first one is a
// PTX text with its NUL.
//
// Trust: a linked image that a program passes back is as untrusted as any other image.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "host/simgpu/image/image.h"

namespace simgpu {

inline constexpr std::size_t max_linked = 0xfeff;  // texts; limited by an ELF header's count

std::vector<std::byte> write_linked(std::span<const std::string> texts);

// Decides by the ELF header.
bool is_linked(const void* elf);
ImageTexts read_linked(const void* elf);

}  // namespace simgpu
