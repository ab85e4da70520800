// Compares this run with an older run: the change of each figure, and whether a figure is worse by more than a margin.
#pragma once

#include <string>
#include <vector>

#include "tools/ivgpu/bench/report/report.h"
#include "tools/ivgpu/bench/report/table.h"

namespace ivgpu::bench {

// For a figure with both sides, compares the ratio to native, since a machine's absolute figures vary between runs and
// native figures vary with them. For other figures, compares the median.
struct Change {
  std::string label;
  std::string what;  // the compared number: "ratio", or the unit of the median
  double before = 0, now = 0;
  double worse_by = 0;  // 0.1: ten per cent worse; negative: better
  bool too_much = false;
};

struct Comparison {
  std::vector<Change> changes;
  std::vector<std::string> differences;  // between the two settings, one sentence per difference
  bool worse() const;
};

// `margin` is a fraction: 0.2 is a fifth. Compares only figures that both runs have.
Comparison compare(const Report& before, const Report& now, double margin);

std::string comparison_text(const Comparison& comparison, double margin, Style style);

}  // namespace ivgpu::bench
