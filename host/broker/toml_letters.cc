#include "host/broker/toml_letters.h"

#include <algorithm>

namespace host::broker {

std::size_t misplaced_letter(std::string_view text) {
  const auto beyond_ascii = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const std::size_t first = line.find_first_not_of(" \t");
    const auto found = std::find_if(line.begin(), line.end(), beyond_ascii);
    if (found != line.end() && line[first] != '#') return at + static_cast<std::size_t>(found - line.begin());
    at = end + 1;
  }
  return text.size();
}

}  // namespace host::broker
