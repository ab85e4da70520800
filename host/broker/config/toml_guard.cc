#include "host/broker/config/toml_guard.h"

#include <algorithm>
#include <string_view>

namespace host::broker {
namespace {

// A VM's name has at most 63 letters; toml++ remembers 127.
constexpr std::ptrdiff_t most_underscores = 63;
// toml++ ends a table by recursion into each nested table, and each dot of a key may create one.
constexpr std::ptrdiff_t most_dots = 100;

bool beyond_ascii(char c) { return static_cast<unsigned char>(c) >= 0x80; }

// toml++ scans a word that may be a date; only these characters end the word.
bool ends_a_word(char c) { return c == ' ' || c == '\t' || c == '.' || c == ','; }

bool has_a_long_word(std::string_view line) {
  std::ptrdiff_t underscores = 0;
  for (const char c : line) {
    if (ends_a_word(c)) underscores = 0;
    if (c == '_' && ++underscores > most_underscores) return true;
  }
  return false;
}

const char* unfit(std::string_view line) {
  if (std::any_of(line.begin(), line.end(), beyond_ascii))
    return "a letter beyond ASCII may stand on a line of comment only";
  if (line.find("\"\"\"") != line.npos || line.find("'''") != line.npos)
    return "a string of several lines is taken by no key";
  if (std::count(line.begin(), line.end(), '.') > most_dots) return "a line may have 100 dots at most";
  if (has_a_long_word(line)) return "a word may have 63 underscores at most";
  return nullptr;
}

}  // namespace

std::optional<Unfit> prepare_for_toml(std::string& text) {
  std::size_t number = 1;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line(text.data() + at, end - at);
    const std::size_t first = line.find_first_not_of(" \t");
    if (first != line.npos && line[first] == '#')
      std::replace_if(text.begin() + static_cast<std::ptrdiff_t>(at), text.begin() + static_cast<std::ptrdiff_t>(end),
                      beyond_ascii, ' ');
    else if (const char* why = unfit(line); why != nullptr)
      return Unfit{number, why};
    at = end + 1;
  }
  return std::nullopt;
}

}  // namespace host::broker
