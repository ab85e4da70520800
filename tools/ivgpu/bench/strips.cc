// The panels that show how samples spread: every latency as a strip, and one of them as a histogram.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/ivgpu/bench/chart.h"
#include "tools/ivgpu/bench/panels.h"

namespace ivgpu::bench {
namespace {

constexpr double row_height = 30, label_width = 190;

double in_microseconds(const Figure& figure, double value) {
  return figure.unit == Unit::Milliseconds ? value * 1000 : value;
}

bool is_a_time(const Figure& f) { return f.unit == Unit::Microseconds || f.unit == Unit::Milliseconds; }

std::vector<const Figure*> times(const Report& report) {
  std::vector<const Figure*> found;
  for (const char* group : {"latency", "memory", "start"})
    for (const Figure& f : report.figures)
      if (is_a_time(f) && f.group == group) found.push_back(&f);
  return found;
}

Extent extent_of(const std::vector<const Figure*>& figures) {
  Extent extent{HUGE_VAL, 0};
  for (const Figure* f : figures) {
    for (const auto* side : {&f->native, &f->ivgpu}) {
      if (!*side) continue;
      extent.low = std::min(extent.low, in_microseconds(*f, (*side)->best));
      extent.high = std::max(extent.high, in_microseconds(*f, (*side)->p99));
    }
  }
  return {std::max(extent.low, 1e-3) / 1.3, extent.high * 1.3};
}

std::string time_text(double microseconds) {
  char text[32];
  if (microseconds >= 1e6)
    std::snprintf(text, sizeof text, "%g s", microseconds / 1e6);
  else if (microseconds >= 1e3)
    std::snprintf(text, sizeof text, "%g ms", microseconds / 1e3);
  else if (microseconds >= 1)
    std::snprintf(text, sizeof text, "%g µs", microseconds);
  else
    std::snprintf(text, sizeof text, "%g ns", microseconds * 1e3);
  return text;
}

// A thin line from the best to the 99th percentile, a bar over the middle half, a dot for the median.
void draw_strip(Svg& svg, const LogAxis& axis, const Figure& figure, const Summary& summary, double y,
                const std::string& color) {
  const auto at = [&](double value) { return axis.place(in_microseconds(figure, value)); };
  svg.line({at(summary.best), y}, {at(summary.p99), y}, color, 2);
  if (!summary.samples.empty()) {
    const double from = at(percentile(summary.samples, 0.25)), to = at(percentile(summary.samples, 0.75));
    svg.rectangle({from, y - 4}, std::max(to - from, 1.0), 8, color);
  }
  svg.line({at(summary.p99), y - 5}, {at(summary.p99), y + 5}, color, 2);
  svg.circle({at(summary.p50), y}, 6, "#ffffff");  // a rim, or it would not be seen on its bar
  svg.circle({at(summary.p50), y}, 4, color);
}

void strips_legend(Svg& svg, double right, double y) {
  svg.words({right, y}, "line: best to 99th percentile, bar: the middle half, dot: median", 11, Svg::Anchor::End);
  svg.circle({right - 470, y - 4}, 4, native_color);
  svg.words({right - 460, y}, "native", 12);
  svg.circle({right - 410, y - 4}, 4, ivgpu_color);
  svg.words({right - 400, y}, "ivgpu", 12);
}

void draw_strips(Svg& svg, const Area& area, const std::vector<const Figure*>& figures) {
  const double top = area.top + 34, left = area.left + label_width, right = area.left + area.width - 18;
  const double bottom = top + row_height * static_cast<double>(figures.size());
  const Extent extent = extent_of(figures);
  const LogAxis axis(extent.low, extent.high, left, right);
  svg.words({area.left + 62, area.top + 20}, "Latencies", 15, Svg::Anchor::Start, "#222222", true);
  strips_legend(svg, right, area.top + 20);
  for (const double tick : axis.ticks()) {
    svg.line({axis.place(tick), top}, {axis.place(tick), bottom}, "#e3e6ea");
    svg.words({axis.place(tick), bottom + 16}, time_text(tick), 11, Svg::Anchor::Middle);
  }
  double y = top;
  for (const Figure* f : figures) {
    svg.words({left - 8, y + row_height / 2 + 4}, f->label(), 12, Svg::Anchor::End);
    if (f->native) draw_strip(svg, axis, *f, *f->native, y + row_height * 0.3, native_color);
    if (f->ivgpu) draw_strip(svg, axis, *f, *f->ivgpu, y + row_height * 0.7, ivgpu_color);
    y += row_height;
    svg.line({area.left + 62, y}, {right, y}, "#f1f3f5");
  }
}

// ---- the distribution ----------------------------------------------------------------------------------------------

struct Curve {
  std::vector<double> parts;  // of the samples, for each bin
  std::string color;
};

std::vector<Curve> curves_of(const Figure& figure, const Bins& bins) {
  std::vector<Curve> curves;
  for (const auto& [side, color] : {std::pair(&figure.native, native_color), std::pair(&figure.ivgpu, ivgpu_color)}) {
    if (!*side) continue;
    Curve curve{{}, color};
    for (const std::size_t count : histogram((*side)->samples, bins))
      curve.parts.push_back(static_cast<double>(count) / static_cast<double>((*side)->count));
    curves.push_back(curve);
  }
  return curves;
}

void draw_curve(Svg& svg, const Curve& curve, const Bins& bins, const Chart& chart, double most) {
  const Area& inner = chart.inner();
  const double bottom = inner.top + inner.height;
  std::vector<Point> points = {{chart.x().place(bins.edge(0)), bottom}};
  for (std::size_t k = 0; k < bins.count; ++k) {
    const double y = bottom - inner.height * curve.parts[k] / most;
    points.push_back({chart.x().place(bins.edge(k)), y});
    points.push_back({chart.x().place(bins.edge(k + 1)), y});
  }
  points.push_back({chart.x().place(bins.edge(bins.count)), bottom});
  svg.area(points, curve.color);
}

void draw_distribution(Svg& svg, const Area& area, const Figure& figure) {
  std::vector<const Summary*> summaries;
  for (const auto* side : {&figure.native, &figure.ivgpu})
    if (*side) summaries.push_back(&**side);
  const Bins bins = bins_for(summaries, 80);
  const std::vector<Curve> curves = curves_of(figure, bins);
  double most = 0;
  for (const Curve& c : curves) most = std::max(most, *std::max_element(c.parts.begin(), c.parts.end()));
  Chart chart(
      svg, area,
      {"A launch and its wait: how often which time", "microseconds, to the 99th percentile", "% of the samples"},
      {bins.low, bins.high}, {1, 10});
  chart.x_ticks(chart.x().ticks(), [](double tick) { return time_text(tick); });
  for (const Curve& c : curves) draw_curve(svg, c, bins, chart, most);
  const Area& inner = chart.inner();
  for (const double part : {0.5, 1.0}) {
    char percent[16];
    std::snprintf(percent, sizeof percent, "%.0f", most * part * 100);
    svg.words({inner.left - 6, inner.top + inner.height * (1 - part) + 4}, percent, 11, Svg::Anchor::End);
  }
  double y = inner.top + 14;
  for (const Curve& c : curves) {
    svg.rectangle({inner.left + inner.width - 70, y - 9}, 12, 9, c.color);
    svg.words({inner.left + inner.width - 52, y}, c.color == native_color ? "native" : "ivgpu", 12);
    y += 17;
  }
}

}  // namespace

std::vector<Panel> latency_panels(const Report& report) {
  const std::vector<const Figure*> figures = times(report);
  if (figures.empty()) return {};
  return {{true, 34 + row_height * static_cast<double>(figures.size()) + 34,
           [figures](Svg& svg, const Area& area) { draw_strips(svg, area, figures); }}};
}

std::vector<Panel> distribution_panels(const Report& report) {
  for (const Figure& f : report.figures) {
    if (f.group != "latency" || f.name != "launch_synchronize") continue;
    if ((f.native && f.native->samples.empty()) || (f.ivgpu && f.ivgpu->samples.empty())) continue;
    return {{true, 260, [&f](Svg& svg, const Area& area) { draw_distribution(svg, area, f); }}};
  }
  return {};
}

}  // namespace ivgpu::bench
