// The panels with curves: copies and sessions.
#include "tools/ivgpu/bench/panels.h"

#include <algorithm>
#include <cstdio>

#include "tools/ivgpu/bench/chart.h"

namespace ivgpu::bench {
namespace {

constexpr double chart_height = 350;
const std::string pinned_color = "#1f6feb", pageable_color = "#d9730d";

std::string plain_number(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

// ---- copies --------------------------------------------------------------------------------------------------------

Series copy_series(const Report& report, const std::string& memory, const std::string& way, bool native) {
  Series series{
      memory + ", " + (native ? "native" : "ivgpu"), memory == "pinned" ? pinned_color : pageable_color, native, {}};
  for (const Figure& f : report.figures) {
    if (f.group != "copy" || f.name != memory + "_" + way || f.bytes == 0) continue;
    if (const auto& side = native ? f.native : f.ivgpu)
      series.points.push_back({static_cast<double>(f.bytes), side->p50});
  }
  return series;
}

std::vector<Series> without_empty(std::vector<Series> series) {
  std::erase_if(series, [](const Series& s) { return s.points.empty(); });
  return series;
}

std::vector<Series> copies(const Report& report, const std::string& way) {
  std::vector<Series> series;
  for (const char* memory : {"pinned", "pageable"})
    for (const bool native : {true, false}) series.push_back(copy_series(report, memory, way, native));
  return without_empty(series);
}

void draw_copies(Svg& svg, const Area& area, const std::string& title, const std::vector<Series>& series) {
  Chart chart(svg, area, {title, "bytes of one copy", "GB/s"}, x_extent(series), y_extent(series));
  std::vector<double> sizes;
  for (const Series& s : series)
    for (const Point& p : s.points) sizes.push_back(p.x);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  chart.x_ticks(sizes, [](double bytes) { return size_text(static_cast<std::uint64_t>(bytes)); });
  chart.y_ticks(chart.y().ticks(), plain_number);
  for (const Series& s : series) chart.draw(s);
  chart.legend(series);
}

// ---- sessions ------------------------------------------------------------------------------------------------------

Series session_series(const Report& report, const std::string& figure, bool native, double Summary::*member,
                      const std::string& what) {
  Series series{(native ? "native" : "ivgpu") + what, native ? native_color : ivgpu_color, member == &Summary::p99, {}};
  for (const Figure& f : report.figures) {
    if (f.group != "sessions" || f.name != figure || f.sessions == 0) continue;
    if (const auto& side = native ? f.native : f.ivgpu)
      series.points.push_back({static_cast<double>(f.sessions), (*side).*member});
  }
  return series;
}

void draw_sessions(Svg& svg, const Area& area, const ChartWords& words, const std::vector<Series>& series) {
  Chart chart(svg, area, words, x_extent(series), y_extent(series));
  chart.x_ticks({1, 2, 4, 8}, plain_number);
  chart.y_ticks(chart.y().ticks(), plain_number);
  for (const Series& s : series) chart.draw(s);
  chart.legend(series);
}

}  // namespace

std::vector<Panel> copy_panels(const Report& report) {
  std::vector<Panel> panels;
  for (const auto& [way, title] :
       {std::pair("h2d", "Copies to the device"), std::pair("d2h", "Copies from the device")}) {
    const auto series = copies(report, way);
    if (series.empty()) continue;
    panels.push_back({false, chart_height, [series, title = std::string(title)](Svg& svg, const Area& area) {
                        draw_copies(svg, area, title, series);
                      }});
  }
  return panels;
}

std::vector<Panel> session_panels(const Report& report) {
  std::vector<Series> waits, rates;
  for (const bool native : {true, false}) {
    waits.push_back(session_series(report, "launch_synchronize", native, &Summary::p50, ", p50"));
    waits.push_back(session_series(report, "launch_synchronize", native, &Summary::p99, ", p99"));
    rates.push_back(session_series(report, "kernels", native, &Summary::p50, ""));
  }
  waits = without_empty(waits);
  rates = without_empty(rates);
  std::vector<Panel> panels;
  const std::string policy = " (" + report.setting.policy + ")", along = "processes at once on one GPU";
  const auto add = [&](const std::vector<Series>& series, const ChartWords& words) {
    if (series.empty()) return;
    panels.push_back({false, chart_height,
                      [series, words](Svg& svg, const Area& area) { draw_sessions(svg, area, words, series); }});
  };
  add(waits, {"A launch and its wait" + policy, along, "microseconds"});
  add(rates, {"Small kernels, all processes together" + policy, along, "kernels per millisecond"});
  return panels;
}

}  // namespace ivgpu::bench
