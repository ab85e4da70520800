// The run as one picture: copies by size, latencies with their spread, the distribution of a launch with its wait, and
// several sessions at once. A part for which nothing was measured is not there.
#pragma once

#include <string>

#include "tools/ivgpu/bench/report.h"

namespace ivgpu::bench {

// An SVG document.
std::string as_picture(const Report& report);

}  // namespace ivgpu::bench
