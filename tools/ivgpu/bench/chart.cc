#include "tools/ivgpu/bench/chart.h"

#include <algorithm>
#include <cmath>

namespace ivgpu::bench {
namespace {

constexpr double left_margin = 62, right_margin = 30, top_margin = 54, bottom_margin = 46;
const std::string grid = "#e3e6ea", frame = "#9aa0a6";

Area inner_of(const Area& area) {
  return {area.left + left_margin, area.top + top_margin, area.width - left_margin - right_margin,
          area.height - top_margin - bottom_margin};
}

Extent extent(const std::vector<Series>& series, double Point::*member, double room) {
  Extent found{HUGE_VAL, 0};
  for (const Series& s : series) {
    for (const Point& p : s.points) {
      found.low = std::min(found.low, p.*member);
      found.high = std::max(found.high, p.*member);
    }
  }
  return {found.low / room, found.high * room};
}

}  // namespace

Extent x_extent(const std::vector<Series>& series) { return extent(series, &Point::x, 1.1); }
Extent y_extent(const std::vector<Series>& series) { return extent(series, &Point::y, 1.3); }

Chart::Chart(Svg& svg, const Area& area, const ChartWords& words, Extent x, Extent y)
    : svg_(svg),
      inner_(inner_of(area)),
      x_(x.low, x.high, inner_.left, inner_.left + inner_.width),
      y_(y.low, y.high, inner_.top + inner_.height, inner_.top) {
  svg.words({inner_.left, area.top + 20}, words.title, 15, Svg::Anchor::Start, "#222222", true);
  svg.words({inner_.left + inner_.width / 2, area.top + area.height - 8}, words.x, 12, Svg::Anchor::Middle);
  svg.words_upwards({area.left + 14, inner_.top + inner_.height / 2}, words.y, 12);
  const double right = inner_.left + inner_.width, bottom = inner_.top + inner_.height;
  svg.line({inner_.left, inner_.top}, {inner_.left, bottom}, frame);
  svg.line({inner_.left, bottom}, {right, bottom}, frame);
}

void Chart::x_ticks(const std::vector<double>& at, const Label& label) {
  const double bottom = inner_.top + inner_.height;
  for (const double tick : at) {
    svg_.line({x_.place(tick), inner_.top}, {x_.place(tick), bottom}, grid);
    svg_.words({x_.place(tick), bottom + 16}, label(tick), 11, Svg::Anchor::Middle);
  }
}

void Chart::y_ticks(const std::vector<double>& at, const Label& label) {
  for (const double tick : at) {
    svg_.line({inner_.left, y_.place(tick)}, {inner_.left + inner_.width, y_.place(tick)}, grid);
    svg_.words({inner_.left - 6, y_.place(tick) + 4}, label(tick), 11, Svg::Anchor::End);
  }
}

void Chart::draw(const Series& series) {
  std::vector<Point> places;
  for (const Point& p : series.points) places.push_back({x_.place(p.x), y_.place(p.y)});
  svg_.path(places, series.color, series.dashed);
  for (const Point& p : places) svg_.circle(p, 3, series.color);
}

// Above the frame, where no curve comes.
void Chart::legend(const std::vector<Series>& series) {
  constexpr double dash = 24, letter = 5.6, size = 10.5;  // a letter's width is a guess that no font exceeds by much
  double left = inner_.left;
  const double y = inner_.top - 10;
  for (const Series& s : series) {
    svg_.path({{left, y - 4}, {left + dash, y - 4}}, s.color, s.dashed);
    svg_.words({left + dash + 4, y}, s.name, size);
    left += dash + 4 + letter * static_cast<double>(s.name.size()) + 10;
  }
}

}  // namespace ivgpu::bench
