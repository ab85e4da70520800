#include "host/broker/config/config_value.h"

#include <fmt/format.h>

#include <utility>

#include "host/base/hostile_text.h"

namespace host::broker {
namespace {

using Kind = KeyKind;
using List = std::vector<std::string>;

template <class Class, class T>
void store(const Key& key, Class& object, const Value& value) {
  if (const auto* member = std::get_if<T Class::*>(&key.member)) object.*(*member) = std::get<T>(value);
}

template <class Class, class... Types>
Value loaded(const Key& key, const Class& object) {
  Value value;
  const auto load = [&]<class T>(T Class::*const* member) {
    if (member != nullptr) value = object.*(*member);
  };
  (load(std::get_if<Types Class::*>(&key.member)), ...);
  return value;
}

// In the largest unit without a remainder.
std::string size_in_the_file(std::int64_t bytes) {
  static constexpr std::pair<const char*, int> units[] = {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}};
  for (const auto& [unit, shift] : units)
    if (bytes >> shift << shift == bytes) return fmt::format("\"{}{}\"", bytes >> shift, unit);
  return fmt::format("\"{}KiB\"", bytes >> 10);
}

std::string number_in_the_file(const Key& key, std::int64_t number) {
  switch (key.kind) {
    case Kind::Size: return size_in_the_file(number);
    case Kind::Quota:
    case Kind::Limit: return number == 0 ? "\"none\"" : size_in_the_file(number);
    case Kind::Processors: return number == 0 ? "\"none\"" : fmt::format("\"{}\"", static_cast<double>(number) / 1000);
    case Kind::Mode: return fmt::format("\"{:04o}\"", number);
    default: return std::to_string(number);
  }
}

std::string quoted(const std::string& text) { return '"' + escaped(text) + '"'; }

std::string list_in_the_file(const List& list) {
  std::string text;
  for (const std::string& element : list) text += (text.empty() ? "" : ", ") + quoted(element);
  return list.empty() ? "\"all\"" : '[' + text + ']';
}

}  // namespace

void assign(const Key& key, BrokerOptions& object, const Value& value) {
  store<BrokerOptions, std::string>(key, object, value);
  store<BrokerOptions, std::int64_t>(key, object, value);
}
void assign(const Key& key, GpuOptions& object, const Value& value) {
  store<GpuOptions, std::string>(key, object, value);
  store<GpuOptions, std::int64_t>(key, object, value);
  store<GpuOptions, bool>(key, object, value);
}
void assign(const Key& key, VmOptions& object, const Value& value) {
  store<VmOptions, std::int64_t>(key, object, value);
  store<VmOptions, std::string>(key, object, value);
  store<VmOptions, bool>(key, object, value);
  store<VmOptions, List>(key, object, value);
}

Value value_in(const Key& key, const BrokerOptions& object) {
  return loaded<BrokerOptions, std::string, std::int64_t>(key, object);
}
Value value_in(const Key& key, const GpuOptions& object) {
  return loaded<GpuOptions, std::string, std::int64_t, bool>(key, object);
}
Value value_in(const Key& key, const VmOptions& object) {
  return loaded<VmOptions, std::int64_t, std::string, bool, List>(key, object);
}

std::string in_the_file(const Key& key, const Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return number_in_the_file(key, *number);
  if (const auto* text = std::get_if<std::string>(&value)) return quoted(*text);
  if (const auto* list = std::get_if<List>(&value)) return list_in_the_file(*list);
  return std::get<bool>(value) ? "true" : "false";
}

}  // namespace host::broker
