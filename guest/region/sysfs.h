// Reads small files and folders of sysfs. The library uses them to find a region.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace guest {

// Returns the file's first bytes; "" if the file cannot be read.
std::string read_text(const std::string& path);
// Reads a decimal number, or a hexadecimal number with 0x. Returns 0 if the file has no number.
std::uint64_t read_number(const std::string& path);
// Returns the names in a folder, sorted; no names if the folder cannot be read.
std::vector<std::string> names_in(const std::string& folder);

}  // namespace guest
