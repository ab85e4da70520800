// Checks text for an operator's terminal: no foreign bytes may move the cursor or begin a line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tests/fuzz/input.h"

namespace fuzz {

inline bool is_printable(char c) { return c >= ' ' && c < 0x7f; }

inline void require_sentence(std::string_view text) {
  for (const char c : text)
    require(is_printable(c), "byte 0x%02x in '%.*s'", static_cast<unsigned char>(c), static_cast<int>(text.size()),
            text.data());
}

inline void require_lines(std::string_view text) {
  require(text.empty() || text.back() == '\n', "the last line has an end");
  for (; !text.empty(); text.remove_prefix(text.find('\n') + 1)) require_sentence(text.substr(0, text.find('\n')));
}

// Parses the document. All its text must be printable, so that every viewer of the document is safe.
inline nlohmann::json require_json(std::string_view text) {
  require_lines(text);
  auto document = nlohmann::json::parse(text, nullptr, false);
  require(!document.is_discarded(), "no JSON: '%.*s'", static_cast<int>(text.size()), text.data());
  return document;
}

}  // namespace fuzz
