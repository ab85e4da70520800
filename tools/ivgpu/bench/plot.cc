#include "tools/ivgpu/bench/plot.h"

#include <algorithm>

#include "tools/ivgpu/bench/panels.h"
#include "tools/ivgpu/bench/svg.h"

namespace ivgpu::bench {
namespace {

constexpr double width = 1100, head_height = 70, gap = 14;

void draw_head(Svg& svg, const Setting& s) {
  svg.words({20, 28}, "ivgpu beside the native driver", 20, Svg::Anchor::Start, "#222222", true);
  svg.words({20, 48},
            s.gpu + ", " + s.driver + ", " + s.processor + " (" + std::to_string(s.processors) +
                " processors), Linux " + s.kernel,
            12);
  svg.words({20, 64}, s.made + ", ivgpu " + s.version + ", " + s.policy, 12);
  if (s.simulated)
    svg.words({width - 20, 28}, "the simulated GPU: these figures say nothing about a GPU", 13, Svg::Anchor::End,
              "#b42318", true);
}

// Rows of panels: a wide one alone, two others beside each other.
std::vector<std::vector<const Panel*>> rows_of(const std::vector<Panel>& panels) {
  std::vector<std::vector<const Panel*>> rows;
  for (const Panel& panel : panels) {
    const bool beside = !panel.wide && !rows.empty() && rows.back().size() == 1 && !rows.back().front()->wide;
    if (beside)
      rows.back().push_back(&panel);
    else
      rows.push_back({&panel});
  }
  return rows;
}

double height_of(const std::vector<const Panel*>& row) {
  double most = 0;
  for (const Panel* panel : row) most = std::max(most, panel->height);
  return most;
}

}  // namespace

std::string as_picture(const Report& report) {
  std::vector<Panel> panels;
  for (const auto& more :
       {latency_panels(report), distribution_panels(report), copy_panels(report), session_panels(report)})
    panels.insert(panels.end(), more.begin(), more.end());
  const auto rows = rows_of(panels);
  double height = head_height;
  for (const auto& row : rows) height += height_of(row) + gap;
  Svg svg(width, height + gap);
  draw_head(svg, report.setting);
  double top = head_height + gap;
  for (const auto& row : rows) {
    double left = 0;
    for (const Panel* panel : row) {
      panel->draw(svg, {left, top, panel->wide ? width : width / 2, panel->height});
      left += width / 2;
    }
    top += height_of(row) + gap;
  }
  return svg.text();
}

}  // namespace ivgpu::bench
