// Keeps texts from toml++ 3.3 for which it has undefined behaviour: letters beyond ASCII in a table of blanks that lets
// them through to a place held for unreachable, a date with so many underscores that it steps back further than it
// remembers, tables so deep that ending them takes the whole stack. No configuration needs any of this. Strings of
// several lines are kept out, too: with them, a comment could not be recognised line by line.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace host::broker {

struct Unfit {
  std::size_t line;  // from 1
  const char* why;
};

// Makes a text one that toml++ may read: of comments, letters beyond ASCII become blanks. Returns nothing, or the part
// that toml++ must not read.
std::optional<Unfit> prepare_for_toml(std::string& text);

}  // namespace host::broker
