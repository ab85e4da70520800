#include "tools/ivgpu/bench/report/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace ivgpu::bench {
namespace {

constexpr std::array<const char*, 5> unit_names = {"us", "ms", "GB/s", "kernels/ms", "%"};

std::optional<double> quotient(double above, double below) {
  if (below == 0) return std::nullopt;
  return above / below;
}

}  // namespace

const char* name_of(Side side) { return side == Side::Native ? "native" : "ivgpu"; }

const char* name_of(Unit unit) { return unit_names[static_cast<std::size_t>(unit)]; }

std::optional<Unit> unit_named(const std::string& name) {
  const auto found = std::find(unit_names.begin(), unit_names.end(), name);
  if (found == unit_names.end()) return std::nullopt;
  return static_cast<Unit>(found - unit_names.begin());
}

bool more_is_better(Unit unit) { return unit == Unit::GigabytesPerSecond || unit == Unit::KernelsPerMillisecond; }

std::string Metric::label() const {
  if (bytes != 0) return name + " " + size_text(bytes);
  if (sessions != 0) return name + " x" + std::to_string(sessions);
  return name;
}

std::optional<double> Metric::ratio() const {
  if (!native || !ivgpu) return std::nullopt;
  return quotient(ivgpu->p50, native->p50);
}

std::optional<double> Metric::ratio_of_p99() const {
  if (!native || !ivgpu) return std::nullopt;
  return quotient(ivgpu->p99, native->p99);
}

bool Metric::is(const Metric& other) const {
  return group == other.group && name == other.name && unit == other.unit && bytes == other.bytes &&
         sessions == other.sessions;
}

Metric& Report::metric(const Metric& like) {
  const auto found = std::find_if(metrics.begin(), metrics.end(), [&](const Metric& f) { return f.is(like); });
  if (found != metrics.end()) return *found;
  metrics.push_back(
      {.group = like.group, .name = like.name, .unit = like.unit, .bytes = like.bytes, .sessions = like.sessions});
  return metrics.back();
}

std::string size_text(std::uint64_t bytes) {
  static constexpr std::array<std::pair<int, const char*>, 3> units = {std::pair{30, " GiB"}, std::pair{20, " MiB"},
                                                                       std::pair{10, " KiB"}};
  for (const auto& [shift, name] : units)
    if (bytes >> shift != 0 && bytes % (std::uint64_t{1} << shift) == 0) return std::to_string(bytes >> shift) + name;
  return std::to_string(bytes) + " B";
}

std::string number_text(double number) {
  const double size = std::fabs(number);
  const int decimals = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 0.1 || size == 0 ? 3 : 4;
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", decimals, number);
  return text;
}

}  // namespace ivgpu::bench
