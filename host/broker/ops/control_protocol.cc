#include "host/broker/ops/control_protocol.h"

#include <algorithm>
#include <charconv>

#include "host/broker/config/config.h"
#include "ring/layout/layout.h"

namespace host::broker {
namespace {

constexpr std::size_t longest_line = 128;  // "end ", a name of 63 letters, a slot, and the line's end
constexpr std::string_view verb = "end ";

}  // namespace

std::optional<EndRequest> parse_end(std::string_view line) {
  if (!line.starts_with(verb)) return std::nullopt;
  line.remove_prefix(verb.size());
  const std::size_t name_end = std::min(line.find('/'), line.size());
  EndRequest request{std::string(line.substr(0, name_end)), std::nullopt};
  if (!is_vm_name(request.vm)) return std::nullopt;
  if (name_end == line.size()) return request;
  const std::string_view number = line.substr(name_end + 1);
  std::uint32_t slot = 0;
  const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), slot);
  if (failed != std::errc() || end != number.data() + number.size() || slot >= ring::max_slots) return std::nullopt;
  request.slot = slot;
  return request;
}

Protocol control_protocol() {
  return {longest_line, [](std::string_view text) { return text.find('\n'); }, ""};
}

std::string control_path(const std::string& runtime_dir) { return runtime_dir + "/ivgpud.control"; }

}  // namespace host::broker
