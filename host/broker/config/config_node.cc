#include "host/broker/config/config_node.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "host/base/loopback_address.h"
#include "host/broker/config/worker_users.h"

namespace host::broker {
namespace {

using Kind = KeyKind;
using List = std::vector<std::string>;

constexpr std::int64_t tebi = std::int64_t{1} << 40;

std::optional<std::int64_t> to_number(std::string_view text, int base) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::int64_t> to_size(std::string_view text) {
  static constexpr std::pair<std::string_view, int> units[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  for (const auto& [unit, shift] : units) {
    if (!text.ends_with(unit)) continue;
    const auto number = to_number(text.substr(0, text.size() - unit.size()), 10);
    if (!number || *number < 0 || *number > tebi >> shift << 4) return std::nullopt;
    return *number << shift;
  }
  return std::nullopt;
}

// "2.5" in thousandths: at most three digits after the point.
std::optional<std::int64_t> to_thousandths(std::string_view text) {
  const std::size_t point = std::min(text.find('.'), text.size());
  std::string digits(text.substr(0, point));
  const std::string_view behind = point < text.size() ? text.substr(point + 1) : "0";
  if (digits.empty() || digits.size() > 6 || behind.empty() || behind.size() > 3) return std::nullopt;
  digits.append(behind).append(3 - behind.size(), '0');
  if (digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return to_number(digits, 10);
}

// True if `allowed` lists the text in quotes.
bool is_choice(const char* allowed, const std::string& text) {
  if (text.find('"') != std::string::npos) return false;  // else two choices and the text between them would match
  return std::string_view(allowed).find('"' + text + '"') != std::string_view::npos;
}

bool begins_with_slash(const Key& key) {
  return std::string_view(key.allowed).find("beginning with /") != std::string_view::npos;
}

// True if the text can be a file's path: no NUL, limited length.
bool fits_a_path(const std::string& text) { return text.find('\0') == std::string::npos && text.size() <= 4000; }

bool is_address(const std::string& text) {
  return text.empty() || (text.starts_with('/') && fits_a_path(text)) || parse_loopback(text);
}

bool good_text(const Key& key, const std::string& text) {
  if (!fits_a_path(text)) return false;
  if (!begins_with_slash(key)) return true;
  return text.starts_with('/') || is_choice(key.allowed, text);
}

std::optional<Value> in_range(const Key& key, std::optional<std::int64_t> number) {
  if (!number || *number < key.least || *number > key.most) return std::nullopt;
  if (key.kind == Kind::Size && (*number & (*number - 1)) != 0) return std::nullopt;
  return Value(*number);
}

// If the key's minimum is -1, "" yields -1.
std::optional<Value> to_mode(const Key& key, const std::string& text) {
  if (text.empty() || text[0] == '-') return text.empty() ? in_range(key, -1) : std::nullopt;
  return in_range(key, to_number(text, 8));
}

// A non-empty list of texts and numbers. The choice in `allowed` yields the empty list.
std::optional<Value> to_list(const Key& key, const toml::node& node) {
  if (const auto word = node.is_string() ? node.value<std::string>() : std::nullopt)
    return is_choice(key.allowed, *word) ? std::optional<Value>(List()) : std::nullopt;
  if (!node.is_array() || node.as_array()->empty()) return std::nullopt;
  List list;
  for (const toml::node& element : *node.as_array()) {
    std::string text;
    if (element.is_string()) text = *element.value<std::string>();
    if (element.is_integer()) text = std::to_string(*element.value<std::int64_t>());
    if (text.empty() || !good_text(key, text)) return std::nullopt;
    list.push_back(text);
  }
  return list;
}

// A limit that may be given as a word.
std::optional<Value> check_limit(const Key& key, const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  if (*text == "none") return Value(std::int64_t{0});
  if (key.kind == Kind::Processors) return in_range(key, to_thousandths(*text));
  if (key.kind == Kind::Quota) return in_range(key, to_size(*text));
  return *text == "auto" ? std::optional<Value>(automatic) : in_range(key, to_size(*text));
}

}  // namespace

std::optional<Value> value_of(const Key& key, const toml::node& node) {
  const auto text = node.is_string() ? node.value<std::string>() : std::nullopt;
  switch (key.kind) {
    case Kind::Integer: return in_range(key, node.is_integer() ? node.value<std::int64_t>() : std::nullopt);
    case Kind::Size: return in_range(key, text ? to_size(*text) : std::nullopt);
    case Kind::Mode: return text ? to_mode(key, *text) : std::nullopt;
    case Kind::Users:
      return text && (text->empty() || to_user_range(*text)) ? std::optional<Value>(*text) : std::nullopt;
    case Kind::Boolean: return node.is_boolean() ? std::optional<Value>(*node.value<bool>()) : std::nullopt;
    case Kind::Choice: return text && is_choice(key.allowed, *text) ? std::optional<Value>(*text) : std::nullopt;
    case Kind::Limit:
    case Kind::Quota:
    case Kind::Processors: return check_limit(key, text);
    case Kind::Text: return text && good_text(key, *text) ? std::optional<Value>(*text) : std::nullopt;
    case Kind::Address: return text && is_address(*text) ? std::optional<Value>(*text) : std::nullopt;
    case Kind::List: return to_list(key, node);
  }
  return std::nullopt;
}

}  // namespace host::broker
