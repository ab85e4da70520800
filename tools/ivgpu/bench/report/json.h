// Writes a run as a JSON document and reads it, so that a later run can be compared with it.
#pragma once

#include <string>

#include "tools/ivgpu/bench/report/report.h"

namespace ivgpu::bench {

std::string as_json(const Report& report);

// Throws an Error (usage) of one sentence if the text is no document of this format; `file` is its name. The returned
// report has no single samples.
Report report_from_json(const std::string& text, const std::string& file);

}  // namespace ivgpu::bench
