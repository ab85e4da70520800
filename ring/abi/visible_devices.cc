#include "ring/abi/visible_devices.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace cuabi {
namespace {

constexpr std::string_view prefixes[] = {"GPU-", "MIG-"};
constexpr std::size_t uuid_length = 36;

// Formats a UUID like "eb696b50-658e-e81a-d4c1-c87b51f46e54".
std::string text_of(const Uuid& uuid) {
  std::string text;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", uuid[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += two;
  }
  return text;
}

// Returns the text after "GPU-", or nothing if the element is no UUID. Text after a whole UUID is ignored, as is text
// after a number.
std::optional<std::string> uuid_in(std::string_view element) {
  for (const std::string_view prefix : prefixes) {
    if (!element.starts_with(prefix)) continue;
    std::string rest(element.substr(prefix.size(), uuid_length));
    std::transform(rest.begin(), rest.end(), rest.begin(), [](unsigned char c) { return std::tolower(c); });
    return rest;
  }
  return std::nullopt;
}

// Finds the device of a UUID. A prefix of the UUID suffices if it fits only one device.
std::optional<std::uint32_t> device_of_uuid(std::string_view beginning, std::span<const Uuid> devices) {
  std::optional<std::uint32_t> found;
  for (std::uint32_t i = 0; i < devices.size() && !beginning.empty(); ++i) {
    if (!text_of(devices[i]).starts_with(beginning)) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

// Parses an index like strtol and truncates it to 32 bits: blanks, a sign and leading zeros are allowed; text after the
// digits is ignored.
std::optional<std::int32_t> index_in(std::string_view element) {
  const std::string text(element);
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (end == text.c_str()) return std::nullopt;
  return static_cast<std::int32_t>(value);
}

std::string_view take_element(std::string_view& list) {
  const std::size_t comma = std::min(list.find(','), list.size());
  const std::string_view element = list.substr(0, comma);
  list.remove_prefix(std::min(comma + 1, list.size()));
  return element;
}

std::optional<std::uint32_t> device_of_index(std::string_view element, std::size_t count) {
  const auto index = index_in(element);
  if (!index || *index < 0 || static_cast<std::size_t>(*index) >= count) return std::nullopt;
  return static_cast<std::uint32_t>(*index);
}

}  // namespace

CUresult visible_devices(const char* list, std::span<const Uuid> devices, std::vector<std::uint32_t>& visible) {
  visible.clear();
  if (list == nullptr)
    for (std::uint32_t i = 0; i < devices.size(); ++i) visible.push_back(i);
  std::string_view rest = list == nullptr ? "" : list;
  // The first element decides whether all elements are UUIDs or indices.
  const bool by_uuid = uuid_in(rest).has_value();
  while (!rest.empty()) {
    const std::string_view element = take_element(rest);
    const auto uuid = uuid_in(element);
    if (uuid.has_value() != by_uuid) break;
    const auto device = by_uuid ? device_of_uuid(*uuid, devices) : device_of_index(element, devices.size());
    if (!device) break;  // the first element without a device ends the list
    if (std::find(visible.begin(), visible.end(), *device) != visible.end()) return CUDA_ERROR_INVALID_DEVICE;
    visible.push_back(*device);
  }
  return visible.empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

bool may_name_a_device(const char* list) {
  if (list == nullptr) return true;
  std::string_view rest = list;
  const std::string_view first = take_element(rest);
  if (const auto uuid = uuid_in(first))
    return !uuid->empty() && std::isxdigit(static_cast<unsigned char>(uuid->front()));
  const auto index = index_in(first);
  return index && *index >= 0;
}

DeviceOrder device_order(const char* value) {
  if (value == nullptr || std::strcmp(value, "FASTEST_FIRST") == 0) return DeviceOrder::FastestFirst;
  return std::strcmp(value, "PCI_BUS_ID") == 0 ? DeviceOrder::PciBusId : DeviceOrder::Invalid;
}

}  // namespace cuabi
