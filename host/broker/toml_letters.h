// Letters beyond ASCII where TOML has no place for them. toml++ 3.3 is not defined on some of these (U+00FD is one: its
// table of blanks lets them through to a place that it holds for unreachable), so they are looked for before it reads a
// text.
#pragma once

#include <cstddef>
#include <string_view>

namespace host::broker {

// Where the first byte stands that is of such a letter and in no string and no comment; the text's size where there is
// none.
std::size_t misplaced_letter(std::string_view text);

}  // namespace host::broker
