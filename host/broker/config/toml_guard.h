// Rejects texts on which toml++ 3.3 has undefined behaviour. Non-ASCII letters reach code that it marks unreachable. A
// date with many underscores makes it step back beyond its buffer. Deeply nested tables exhaust the stack. No
// configuration needs these. Multi-line strings are rejected, too, because they would hide comments from a line-by-line
// scan.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace host::broker {

struct Unfit {
  std::size_t line;  // counts from 1
  const char* why;
};

// Replaces non-ASCII letters in comments by blanks. Returns nothing if toml++ may read the text, else the reason.
[[nodiscard]] std::optional<Unfit> prepare_for_toml(std::string& text);

}  // namespace host::broker
