// Distributions as lines for a terminal, native above ivgpu. Each bin is one letter, whose height shows the number of
// samples.
#pragma once

#include <string>

#include "tools/ivgpu/bench/report/report.h"

namespace ivgpu::bench {

enum class Letters { Unicode, Plain };  // Plain: ASCII, for an output without UTF-8 or that is no terminal

// Shows both sides over one logarithmic axis. Returns "" if there are too few samples for a distribution.
std::string histogram_text(const Metric& metric, Letters letters);

// The histograms of all figures for which distributions are useful.
std::string histograms_text(const Report& report, Letters letters);

}  // namespace ivgpu::bench
