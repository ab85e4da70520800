// A run as a JSON document, and back: what a later run is compared with.
#pragma once

#include <string>

#include "tools/ivgpu/bench/report.h"

namespace ivgpu::bench {

std::string as_json(const Report& report);

// An Error (usage) in one sentence where the text is none of this version's documents; `file` is its name.
// What comes back has no single samples.
Report report_from_json(const std::string& text, const std::string& file);

}  // namespace ivgpu::bench
