// Splits PTX text into tokens that point into the text, which must outlive the tokens. Any bytes yield tokens or an
// Error with a line number; nothing outside the text is read.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "host/simgpu/ptx/types.h"

namespace simgpu::ptx {

struct Token {
  enum class Kind : std::uint8_t {
    Name,     // for example add, %r1, $L__BB0_1
    Dotted,   // for example .reg, .shared::cta; `text` lacks the first dot
    Integer,  // `value` is the number
    Float32,  // `value` holds the bits of the float
    Float64,  // `value` holds the bits of the double
    String,   // `text` lacks the quotes
    Mark,     // `text` is one punctuation character
    End,
  };
  Kind kind = Kind::End;
  bool glued = false;  // no blank separates the token from the previous token
  unsigned line = 0;
  std::string_view text;
  std::uint64_t value = 0;

  bool is(char mark) const { return kind == Kind::Mark && text[0] == mark; }
};

// Returns the tokens. The last token has kind End.
std::vector<Token> lex(std::string_view text);

}  // namespace simgpu::ptx
