#include "host/broker/ops/metrics_text.h"

#include <fmt/format.h>

namespace host::broker {
namespace {

const char* type_of(ring::MetricKind kind) { return kind == ring::MetricKind::Counter ? "counter" : "gauge"; }

std::string in_quotes(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '\n')
      text += "\\n";
    else if (c == '"' || c == '\\')
      (text += '\\') += c;
    else
      text += c;
  }
  return text + '"';
}

std::string in_braces(const MetricsText::Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, in_quotes(value));
  return text.empty() ? "" : '{' + text + '}';
}

// A computed fraction has fifteen reliable digits.
std::string in_digits(const Number& value) {
  const auto* whole = std::get_if<std::uint64_t>(&value);
  return whole != nullptr ? std::to_string(*whole) : fmt::format("{:.15g}", std::get<double>(value));
}

}  // namespace

void MetricsText::add(const std::string& name, ring::MetricKind kind, const char* help, const Labels& labels,
                      Number value) {
  const auto [place, is_new] = places_.try_emplace(name, families_.size());
  if (is_new) families_.push_back({fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type_of(kind)), ""});
  families_[place->second].samples += fmt::format("{}{} {}\n", name, in_braces(labels), in_digits(value));
}

std::string MetricsText::text() const {
  std::string text;
  for (const Family& family : families_) text += family.head + family.samples;
  return text;
}

std::string metric_name(std::string_view prefix, const ring::Metric& metric) {
  std::string_view key = *metric.metric != '\0' ? metric.metric : metric.key;
  const bool is_time = metric.unit == ring::Unit::Seconds || metric.unit == ring::Unit::Milliseconds;
  if (is_time) key = key.substr(0, key.rfind('_'));
  return fmt::format("ivgpu_{}{}{}{}", prefix, key, is_time ? "_seconds" : "",
                     metric.kind == ring::MetricKind::Counter ? "_total" : "");
}

}  // namespace host::broker
