#include "tools/ivgpu/support/size.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace ivgpu {
namespace {

// "1G" and the like from a size; nullopt if the text is no size.
std::optional<std::string> number_and_unit(const std::string& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  if (end == 0) return std::nullopt;
  const std::string number = text.substr(0, end);
  std::string_view unit = std::string_view(text).substr(end);
  if (unit.empty()) return number + 'M';
  if (unit.size() == 3 && unit.ends_with("iB")) unit.remove_suffix(2);
  const int letter = std::toupper(static_cast<unsigned char>(unit.front()));
  if (unit.size() != 1 || std::string_view("KMGT").find(static_cast<char>(letter)) == std::string_view::npos)
    return std::nullopt;
  return number + static_cast<char>(letter);
}

}  // namespace

std::string size_for_config(const std::string& text) {
  const auto size = number_and_unit(text);
  return size ? *size + "iB" : text;
}

std::string size_for_qemu(const std::string& text) { return number_and_unit(text).value_or(text); }

std::optional<std::uint64_t> size_in_bytes(const std::string& text) {
  const auto size = number_and_unit(text);
  std::uint64_t bytes = 0;
  if (!size || std::from_chars(size->data(), size->data() + size->size(), bytes).ec != std::errc()) return std::nullopt;
  for (std::size_t k = std::string_view("KMGT").find(size->back()) + 1; k > 0; --k)
    if (__builtin_mul_overflow(bytes, std::uint64_t{1024}, &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace ivgpu
