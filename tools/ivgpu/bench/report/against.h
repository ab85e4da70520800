// This run beside an older one: the change of each figure, and whether one has become worse than a margin allows.
#pragma once

#include <string>
#include <vector>

#include "tools/ivgpu/bench/report/report.h"
#include "tools/ivgpu/bench/report/table.h"

namespace ivgpu::bench {

// Of a figure with both sides, the ratio to native is compared: a machine's absolute figures move from run to run, and
// native ones with them. Else the median.
struct Change {
  std::string label;
  std::string what;  // the compared number: "ratio", or the unit of the median
  double before = 0, now = 0;
  double worse_by = 0;  // 0.1: ten per cent worse; negative: better
  bool too_much = false;
};

struct Comparison {
  std::vector<Change> changes;
  std::vector<std::string> differences;  // of the two settings, a sentence each
  bool worse() const;
};

// `margin` as a part of the whole: 0.2 is a fifth. Only figures that both runs have are compared.
Comparison compare(const Report& before, const Report& now, double margin);

std::string comparison_text(const Comparison& comparison, double margin, Style style);

}  // namespace ivgpu::bench
