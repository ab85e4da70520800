#include "tools/ivgpu/bench/report/against.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ivgpu::bench {
namespace {

// A negligible share of a processor's time: shares below this value compare as equal.
constexpr double no_share = 0.1;  // per cent

// A negligible difference: the placement of code and data alone changes times by this much.
constexpr double no_time = 0.02;  // microseconds

// The relative slowdown: 0.25 if a time grew by a quarter, or a rate fell to four fifths.
double slower_by(double before, double now, Unit unit) {
  if (unit == Unit::Percent) before = std::max(before, no_share), now = std::max(now, no_share);
  const double above = more_is_better(unit) ? before : now, below = more_is_better(unit) ? now : before;
  return below > 0 ? above / below - 1 : 0;
}

std::optional<Change> change_of(const Metric& before, const Metric& now, double margin) {
  if (!before.ivgpu || !now.ivgpu) return std::nullopt;
  Change change{.label = now.label(), .what = name_of(now.unit)};
  if (before.ratio() && now.ratio())
    change.what = "ratio", change.before = *before.ratio(), change.now = *now.ratio();
  else
    change.before = before.ivgpu->p50, change.now = now.ivgpu->p50;
  change.worse_by = slower_by(change.before, change.now, now.unit);
  const bool next_to_none = now.unit == Unit::Microseconds && std::fabs(now.ivgpu->p50 - before.ivgpu->p50) < no_time;
  change.too_much = change.worse_by > margin && !next_to_none;
  return change;
}

std::vector<std::string> differences_of(const Setting& before, const Setting& now) {
  std::vector<std::string> found;
  const auto look = [&](const char* what, const std::string& a, const std::string& b) {
    if (a != b) found.push_back(std::string(what) + " was " + a + " and is " + b);
  };
  look("the GPU", before.gpu, now.gpu);
  look("the driver", before.driver, now.driver);
  look("the policy", before.policy, now.policy);
  look("the processor", before.processor, now.processor);
  look("the number of samples", before.quick ? "few" : "full", now.quick ? "few" : "full");
  for (const auto& [name, value] : now.switches)
    for (const auto& [old_name, old_value] : before.switches)
      if (name == old_name) look(name.c_str(), old_value.empty() ? "-" : old_value, value.empty() ? "-" : value);
  return found;
}

std::string change_text(const Change& change) {
  char text[48];
  std::snprintf(text, sizeof text, "%.0f %% %s", std::abs(change.worse_by) * 100,
                change.worse_by > 0 ? "worse" : "better");
  return std::abs(change.worse_by) < 0.005 ? "the same" : text;
}

}  // namespace

bool Comparison::worse() const {
  return std::any_of(changes.begin(), changes.end(), [](const Change& c) { return c.too_much; });
}

Comparison compare(const Report& before, const Report& now, double margin) {
  Comparison comparison{{}, differences_of(before.setting, now.setting)};
  for (const Metric& metric : now.metrics) {
    const auto old =
        std::find_if(before.metrics.begin(), before.metrics.end(), [&](const Metric& f) { return f.is(metric); });
    if (old == before.metrics.end()) continue;
    if (const auto change = change_of(*old, metric, margin)) comparison.changes.push_back(*change);
  }
  return comparison;
}

std::string comparison_text(const Comparison& comparison, double margin, Style style) {
  std::vector<std::vector<std::string>> rows;
  for (const Change& c : comparison.changes)
    rows.push_back(
        {c.label, c.what, number_text(c.before), number_text(c.now), change_text(c), c.too_much ? "TOO MUCH" : ""});
  std::string text = "\n" + as_table({"against the older run", "of", "before", "now", "change", ""}, rows, style);
  for (const std::string& difference : comparison.differences) text += "Not the same: " + difference + ".\n";
  char end[96];
  std::snprintf(end, sizeof end, "%s than the margin of %.0f %%.\n",
                comparison.worse() ? "Something is worse, by more" : "Nothing is worse by more", margin * 100);
  return text + end;
}

}  // namespace ivgpu::bench
