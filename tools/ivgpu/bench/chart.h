// Shared by the panels with two axes: title, frame, lines of the axes with their numbers, and the legend.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/ivgpu/bench/panels.h"
#include "tools/ivgpu/bench/svg.h"

namespace ivgpu::bench {

inline const std::string native_color = "#8a8f98", ivgpu_color = "#1f6feb";

struct Extent {
  double low, high;
};

struct Series {
  std::string name, color;
  bool dashed;
  std::vector<Point> points;  // in the units of the axes
};

struct ChartWords {
  std::string title, x, y;
};

class Chart {
 public:
  Chart(Svg& svg, const Area& area, const ChartWords& words, Extent x, Extent y);

  using Label = std::function<std::string(double)>;
  void x_ticks(const std::vector<double>& at, const Label& label);
  void y_ticks(const std::vector<double>& at, const Label& label);
  const LogAxis& x() const { return x_; }
  const LogAxis& y() const { return y_; }
  const Area& inner() const { return inner_; }

  void draw(const Series& series);
  void legend(const std::vector<Series>& series);

 private:
  Svg& svg_;
  Area inner_;
  LogAxis x_, y_;
};

// The smallest extent that holds all points, with a little room around.
Extent x_extent(const std::vector<Series>& series);
Extent y_extent(const std::vector<Series>& series);

}  // namespace ivgpu::bench
