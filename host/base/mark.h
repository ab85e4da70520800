// A hash of a text that the next broker needs to compare but not to read.
#pragma once

#include <cstdint>
#include <string_view>

namespace host::broker {

inline std::uint64_t mark_of(std::string_view text) {
  std::uint64_t mark = 0xcbf29ce484222325;  // FNV-1a
  for (const char letter : text) mark = (mark ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return mark;
}

}  // namespace host::broker
