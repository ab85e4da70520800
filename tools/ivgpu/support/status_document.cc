#include "tools/ivgpu/support/status_document.h"

#include <cstdio>
#include <iterator>

namespace ivgpu {
namespace {

constexpr int known_format = 1;

const json none;

}  // namespace

json parse_status(const std::string& document) {
  json status = json::parse(document, nullptr, false);
  if (!status.is_object() || status.value("format", json()) != known_format)
    throw Error(exit_code::missing, "the broker is of another version: this is not the status that this ivgpu knows");
  return status;
}

void status_incomplete(const std::string& what) {
  throw Error(exit_code::missing, "the broker's status is not complete: " + what);
}

std::string word_of(const json& word) {
  std::string text;
  for (const char c : word.get<std::string>()) {
    char code[8];
    std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned char>(c));
    if (c >= ' ' && c < 0x7f)
      text += c;
    else
      text += code;
  }
  return text;
}

double value_of(const json& fields, const ring::Metric& metric) {
  if (!fields.is_object() || !fields.contains(metric.key)) return 0;
  const json& value = fields[metric.key];
  const bool counts = metric.unit == ring::Unit::Number || metric.unit == ring::Unit::Bytes;
  return counts ? static_cast<double>(number_of<std::uint64_t>(value)) : value.get<double>();
}

bool is_known(const json& fields, const ring::Metric& metric) {
  return fields.is_object() && !fields.at(metric.key).is_null();
}

const json& Earlier::vm(const json& name) const {
  if (!document.is_object()) return none;
  for (const json& vm : document.at("vms"))
    if (vm.at("name") == name) return vm;
  return none;
}

const json& Earlier::counters(const json& vm_or_slot) {
  return vm_or_slot.is_object() && vm_or_slot.contains("counters") ? vm_or_slot["counters"] : none;
}

long Earlier::worker_of(const json& slot) { return slot.contains("worker") ? number_of<long>(slot["worker"]) : 0; }

const json& Earlier::slot(const json& vm, const json& now) {
  if (!vm.is_object()) return none;
  for (const json& slot : vm.at("slots"))
    if (slot.at("slot") == now.at("slot") && worker_of(slot) == worker_of(now)) return slot;
  return none;
}

double per_second(const json& now, const json& before, const ring::Metric& metric, double seconds) {
  const double grown = value_of(now, metric) - value_of(before, metric);
  return grown > 0 ? grown / seconds : 0;
}

std::string rounded_size(double bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return text;
}

std::string rounded_count(double count) {
  static constexpr const char* units[] = {"", " k", " M", " G", " T", " P", " E"};
  std::size_t unit = 0;
  if (count >= 1e8)
    for (; count >= 1000 && unit + 1 < std::size(units); ++unit) count /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f%s" : "%.1f%s", count, units[unit]);
  return text;
}

std::string rounded(const ring::Metric& metric, double number) {
  switch (metric.unit) {
    case ring::Unit::Number: return rounded_count(number);
    case ring::Unit::Bytes: return rounded_size(number);
    case ring::Unit::Seconds: return rounded_count(number) + " s";
    case ring::Unit::Milliseconds: return rounded_count(number) + " ms";
  }
  return "";
}

std::string rounded_rate(const ring::Metric& metric, double per_second) {
  return metric.unit == ring::Unit::Seconds ? rounded_count(100 * per_second) + " %" : rounded(metric, per_second);
}

std::string seconds_of(const json& seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds.get<double>());
  return text;
}

}  // namespace ivgpu
