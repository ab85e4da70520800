#include "tools/ivgpu/bench/share_picture.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/ivgpu/bench/chart.h"

namespace ivgpu::bench {
namespace {

using Did = Shared::Did;

constexpr double width = 1000, label_width = 210, gap = 40, row_height = 40, top = 76, bottom_margin = 34;

struct Way {
  const char* name;
  std::string color;
  Did Shared::*did;
};
const std::array<Way, 3>& ways() {
  static const std::array<Way, 3> all = {{{"native", native_color, &Shared::native},
                                          {"time-slice", "#d97706", &Shared::slices},
                                          {"turns", ivgpu_color, &Shared::turns}}};
  return all;
}

struct Column {
  double left, right;
};
constexpr double column_width = (width - label_width - 2 * gap) / 2;
constexpr Column rates{label_width, label_width + column_width},
    times{rates.right + gap, rates.right + gap + column_width};

void widen(Extent& extent, double number) {
  if (!(number > 0)) return;  // a load that has done nothing is not on a logarithmic axis
  extent.low = std::min(extent.low, number);
  extent.high = std::max(extent.high, number);
}

Extent with_room(Extent extent) {
  return extent.high > 0 ? Extent{extent.low / 1.3, extent.high * 1.3} : Extent{1, 10};
}

Extent extent_of_rates(const std::vector<Shared>& all) {
  Extent extent{HUGE_VAL, 0};
  for (const Shared& one : all)
    for (const Way& way : ways())
      if (one.native.per_second > 0) widen(extent, (one.*way.did).per_second / one.native.per_second);
  return with_room(extent);
}

Extent extent_of_times(const std::vector<Shared>& all) {
  Extent extent{HUGE_VAL, 0};
  for (const Shared& one : all)
    for (const Way& way : ways())
      for (const double time : {(one.*way.did).p50_us, (one.*way.did).p99_us}) widen(extent, time);
  return with_room(extent);
}

void draw_axis(Svg& svg, const LogAxis& axis, double bottom, const char* unit) {
  for (const double tick : axis.ticks()) {
    svg.line({axis.place(tick), top}, {axis.place(tick), bottom}, "#e3e6ea");
    svg.words({axis.place(tick), bottom + 16}, number_text(tick) + unit, 11, Svg::Anchor::Middle);
  }
}

void draw_legend(Svg& svg) {
  svg.words({20, 26}, "Loads that share a GPU", 15, Svg::Anchor::Start, "#222222", true);
  double x = 230;
  for (const Way& way : ways()) {
    svg.circle({x, 22}, 4, way.color);
    svg.words({x + 10, 26}, way.name, 12);
    x += 100;
  }
  svg.words({rates.left, 58}, "done, beside the same natively", 12);
  svg.words({times.left, 58}, "a piece of work: median, and line to the 99th percentile", 12);
}

// Nothing for a load that has done nothing.
void draw_way(Svg& svg, const Did& did, const Did& native, const std::string& color, double y, const LogAxis& rate_axis,
              const LogAxis& time_axis) {
  if (did.per_second > 0 && native.per_second > 0)
    svg.circle({rate_axis.place(did.per_second / native.per_second), y}, 4, color);
  if (!(did.p50_us > 0)) return;
  svg.line({time_axis.place(did.p50_us), y}, {time_axis.place(did.p99_us), y}, color, 2);
  svg.circle({time_axis.place(did.p50_us), y}, 4, color);
}

void draw_row(Svg& svg, const Shared& one, double y, const LogAxis& rate_axis, const LogAxis& time_axis) {
  const std::string what = one.mix == one.load ? one.mix : one.mix + ": " + one.load;
  svg.words({label_width - 10, y + row_height / 2 + 4}, what, 12, Svg::Anchor::End);
  double at = y + row_height * 0.2;
  for (const Way& way : ways()) {
    draw_way(svg, one.*way.did, one.native, way.color, at, rate_axis, time_axis);
    at += row_height * 0.3;
  }
  svg.line({20, y + row_height}, {times.right, y + row_height}, "#f1f3f5");
}

}  // namespace

std::string share_picture(const std::vector<Shared>& all) {
  const double bottom = top + row_height * static_cast<double>(all.size());
  Svg svg(width, bottom + bottom_margin);
  const Extent rate_extent = extent_of_rates(all), time_extent = extent_of_times(all);
  const LogAxis rate_axis(rate_extent.low, rate_extent.high, rates.left, rates.right),
      time_axis(time_extent.low, time_extent.high, times.left, times.right);
  draw_legend(svg);
  draw_axis(svg, rate_axis, bottom, " x");
  draw_axis(svg, time_axis, bottom, " us");
  double y = top;
  for (const Shared& one : all) {
    draw_row(svg, one, y, rate_axis, time_axis);
    y += row_height;
  }
  return svg.text();
}

}  // namespace ivgpu::bench
