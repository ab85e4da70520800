// A run as a JSON document, and back, so that a later run can be compared with it.
#pragma once

#include <string>

#include "tools/ivgpu/bench/report/report.h"

namespace ivgpu::bench {

std::string as_json(const Report& report);

// An Error (usage) in one sentence if the text is none of this version's documents; `file` is its name.
// The returned report has no single samples.
Report report_from_json(const std::string& text, const std::string& file);

}  // namespace ivgpu::bench
