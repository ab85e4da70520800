// Formats one call of device printf. Arguments lie at their natural alignment; floats are passed as doubles.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace simgpu {

struct FormatSource {
  // Reads 4 or 8 bytes at an offset of the argument buffer; 0 beyond its end.
  std::function<std::uint64_t(std::size_t offset, unsigned size)> argument;
  // Reads the string at a device address.
  std::function<std::string(std::uint64_t address)> string;
};

// Sets `count` to the number of arguments used.
std::string format_printf(const std::string& text, const FormatSource& source, int& count);

}  // namespace simgpu
