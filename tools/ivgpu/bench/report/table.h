// The run as text: its setting, a table of the figures, and the omitted figures.
#pragma once

#include <string>
#include <vector>

#include "tools/ivgpu/bench/report/report.h"

namespace ivgpu::bench {

enum class Style { Plain, Markdown };

// Cells in columns: the first column is left-aligned, the others right-aligned. All rows have as many cells as `head`.
std::string as_table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows,
                     Style style);

std::string setting_text(const Setting& setting, Style style);

// A table per group, in the order in which the groups first appear.
std::string metrics_text(const Report& report, Style style);

}  // namespace ivgpu::bench
