#include "tools/ivgpu/size.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

namespace ivgpu {
namespace {

// Number and unit, as "1G"; nothing where the text is no size.
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

}  // namespace ivgpu
