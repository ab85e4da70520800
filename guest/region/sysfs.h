// Reads small files and folders of sysfs, to find a region.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace guest {

// The file's first bytes; "" if it cannot be read.
std::string read_text(const std::string& path);
// A decimal number, or hexadecimal with 0x; 0 if the file holds none.
std::uint64_t read_number(const std::string& path);
// The names in a folder, sorted; none if the folder cannot be read.
std::vector<std::string> names_in(const std::string& folder);

}  // namespace guest
