// The parts of the picture. Each draws itself into a rectangle that is its own, with axes, units and legend, and
// returns false if there is nothing to draw.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/ivgpu/bench/report.h"
#include "tools/ivgpu/bench/svg.h"

namespace ivgpu::bench {

struct Area {
  double left, top, width, height;
};

struct Panel {
  bool wide;  // over the whole width; else two stand beside each other
  double height;
  std::function<void(Svg&, const Area&)> draw;
};

// Sizes along, GB/s upwards, both logarithmic; to the device and back. `report` must outlive the panels.
std::vector<Panel> copy_panels(const Report& report);
// Each figure as two strips, native above ivgpu, on one logarithmic axis of time.
std::vector<Panel> latency_panels(const Report& report);
// The frequency of each time: launch_synchronize, natively and through ivgpu.
std::vector<Panel> distribution_panels(const Report& report);
// Sessions along; upwards the latency, or the kernels of all together.
std::vector<Panel> session_panels(const Report& report);

}  // namespace ivgpu::bench
