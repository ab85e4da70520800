// Splits PTX text into tokens that point into the text, which must outlive them. Any bytes give tokens or an Error with
// the line; nothing outside the text is read.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "host/simgpu/ptx/types.h"

namespace simgpu::ptx {

struct Token {
  enum class Kind : std::uint8_t {
    Name,     // add, %r1, $L__BB0_1
    Dotted,   // .reg, .shared::cta: text without the first dot
    Integer,  // value
    Float32,  // value holds the bits of the single
    Float64,  // value holds the bits of the double
    String,   // text without the quotes
    Mark,     // one character of punctuation, in text
    End,
  };
  Kind kind = Kind::End;
  bool glued = false;  // directly follows the previous token
  unsigned line = 0;
  std::string_view text;
  std::uint64_t value = 0;

  bool is(char mark) const { return kind == Kind::Mark && text[0] == mark; }
};

// Ends with a token of kind End.
std::vector<Token> lex(std::string_view text);

}  // namespace simgpu::ptx
