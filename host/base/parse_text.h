// Splits a line into words, and reads a word as a number.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace host::broker {

// Removes the first word and the space after it from the line, and returns the word.
inline std::string_view first_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view first = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return first;
}

// Nothing unless the whole text is a number in this base.
template <class T>
[[nodiscard]] std::optional<T> number_of(std::string_view text, int base = 10) {
  T value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace host::broker
