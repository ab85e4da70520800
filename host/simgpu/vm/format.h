// Device printf: the text of one call. Arguments lie in memory at their natural alignment, singles as doubles.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace simgpu {

struct FormatSource {
  // The 4 or 8 bytes at an offset of the argument buffer; 0 where it does not reach.
  std::function<std::uint64_t(std::size_t offset, unsigned size)> argument;
  // The string at an address of device memory.
  std::function<std::string(std::uint64_t address)> string;
};

// `count` gets the number of arguments that were used.
std::string format_printf(const std::string& text, const FormatSource& source, int& count);

}  // namespace simgpu
