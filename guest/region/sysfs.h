// Small files and folders of sysfs, for finding a region.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace guest {

// Its beginning; "" if it cannot be read.
std::string read_text(const std::string& path);
// Decimal, or with 0x; 0 if there is no number.
std::uint64_t read_number(const std::string& path);
// The names in a folder, sorted; none if it cannot be read.
std::vector<std::string> names_in(const std::string& folder);

}  // namespace guest
