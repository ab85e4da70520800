// Distributions as lines of a terminal: native above ivgpu, one letter a bin, the taller the more samples lie there.
#pragma once

#include <string>

#include "tools/ivgpu/bench/report/report.h"

namespace ivgpu::bench {

enum class Letters { Unicode, Plain };  // Plain: ASCII, for an output that is no terminal or knows no UTF-8

// Of both sides over one logarithmic axis. Empty where there are too few samples for a distribution to be seen.
std::string histogram_text(const Metric& metric, Letters letters);

// The histograms of figures whose distribution is of interest.
std::string histograms_text(const Report& report, Letters letters);

}  // namespace ivgpu::bench
