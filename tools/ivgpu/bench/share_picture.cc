#include "tools/ivgpu/bench/share_picture.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/ivgpu/bench/chart.h"
#include "tools/ivgpu/bench/share_table.h"

namespace ivgpu::bench {
namespace {

using Did = Shared::Did;

constexpr double width = 1300, label_width = 290, even_width = 160, gap = 40, row_height = 40, top = 76,
                 bottom_margin = 34;

struct Way {
  const char* name;
  std::string color;
  Did Shared::*did;
};
const std::array<Way, 3>& ways() {
  static const std::array<Way, 3> all = {{{"native", native_color, &Shared::native},
                                          {"time-slice", "#d97706", &Shared::slices},
                                          {"leases", ivgpu_color, &Shared::leases}}};
  return all;
}

struct Column {
  double left, right;
};
constexpr double column_width = (width - label_width - even_width - 4 * gap) / 3;
constexpr Column rates{label_width, label_width + column_width},
    parts{rates.right + gap, rates.right + gap + column_width},
    times{parts.right + gap, parts.right + gap + column_width}, even{times.right + gap, width - gap};

struct Axes {
  LogAxis rate, part, time;
};

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

Extent extent_of_parts(const std::vector<Shared>& all) {
  Extent extent{HUGE_VAL, 0};
  for (const Shared& one : all)
    for (const Way& way : ways()) widen(extent, (one.*way.did).fair.of_alone.value_or(0));
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
  svg.words({parts.left, 58}, "done, beside the same alone", 12);
  svg.words({times.left, 58}, "a piece of work: p50, line to p99", 12);
  svg.words({even.left, 58}, "leases: by weight, Jain", 12);
}

void draw_point(Svg& svg, const LogAxis& axis, double number, double y, const std::string& color) {
  if (number > 0) svg.circle({axis.place(number), y}, 4, color);
}

// Nothing for a load that has done nothing.
void draw_way(Svg& svg, const Did& did, const Did& native, const std::string& color, double y, const Axes& axes) {
  if (native.per_second > 0) draw_point(svg, axes.rate, did.per_second / native.per_second, y, color);
  draw_point(svg, axes.part, did.fair.of_alone.value_or(0), y, color);
  if (did.p50_us > 0) svg.line({axes.time.place(did.p50_us), y}, {axes.time.place(did.p99_us), y}, color, 2);
  draw_point(svg, axes.time, did.p50_us, y, color);
}

void draw_even(Svg& svg, const Fairness& fair, double y) {
  const double middle = (even.left + even.right) / 2;
  if (fair.by_weight) svg.words({even.left, y}, number_text(*fair.by_weight), 12);
  if (fair.jain) svg.words({middle, y}, number_text(*fair.jain), 12);
}

void draw_row(Svg& svg, const Shared& one, double y, const Axes& axes) {
  const std::string what = one.mix == one.load ? one.mix : one.mix + ": " + load_text(one);
  svg.words({label_width - 10, y + row_height / 2 + 4}, what, 12, Svg::Anchor::End);
  double at = y + row_height * 0.2;
  for (const Way& way : ways()) {
    draw_way(svg, one.*way.did, one.native, way.color, at, axes);
    at += row_height * 0.3;
  }
  draw_even(svg, one.leases.fair, y + row_height / 2 + 4);
  svg.line({20, y + row_height}, {even.right, y + row_height}, "#f1f3f5");
}

LogAxis axis_in(const Column& column, Extent extent) { return {extent.low, extent.high, column.left, column.right}; }

}  // namespace

std::string share_picture(const std::vector<Shared>& all) {
  const double bottom = top + row_height * static_cast<double>(all.size());
  Svg svg(width, bottom + bottom_margin);
  const Axes axes{axis_in(rates, extent_of_rates(all)), axis_in(parts, extent_of_parts(all)),
                  axis_in(times, extent_of_times(all))};
  draw_legend(svg);
  draw_axis(svg, axes.rate, bottom, " x");
  draw_axis(svg, axes.part, bottom, " x");
  draw_axis(svg, axes.time, bottom, " us");
  double y = top;
  for (const Shared& one : all) {
    draw_row(svg, one, y, axes);
    y += row_height;
  }
  return svg.text();
}

}  // namespace ivgpu::bench
