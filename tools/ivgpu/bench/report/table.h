// The run as text: its setting, the figures as a table, and the figures that were left out.
#pragma once

#include <string>
#include <vector>

#include "tools/ivgpu/bench/report/report.h"

namespace ivgpu::bench {

enum class Style { Plain, Markdown };

// Cells in columns: the first to the left, the others to the right. All rows have as many cells as `head`.
std::string as_table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows,
                     Style style);

std::string setting_text(const Setting& setting, Style style);

// A table for each group, in the order in which the groups appear.
std::string metrics_text(const Report& report, Style style);

}  // namespace ivgpu::bench
