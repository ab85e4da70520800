// Formats the text of one device printf call. Arguments have their natural alignment; floats are passed as doubles.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace simgpu {

struct FormatSource {
  // Reads 4 or 8 bytes at an offset of the argument buffer. Bytes beyond the end of the buffer are 0.
  std::function<std::uint64_t(std::size_t offset, unsigned size)> argument;
  // Reads the string at a device address.
  std::function<std::string(std::uint64_t address)> string;
};

// Returns the text, and sets `count` to the number of arguments that were used.
std::string format_printf(const std::string& text, const FormatSource& source, int& count);

}  // namespace simgpu
