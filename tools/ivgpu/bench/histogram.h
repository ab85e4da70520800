// Distributions as lines of a terminal: native above ivgpu, one letter a bin, the taller the more samples lie there.
#pragma once

#include <string>

#include "tools/ivgpu/bench/report.h"

namespace ivgpu::bench {

enum class Letters { Unicode, Plain };  // Plain: ASCII, for what is no terminal or knows no UTF-8

// Of both sides over one logarithmic axis. Empty where there are too few samples for a distribution to be seen.
std::string histogram_text(const Figure& figure, Letters letters);

// Those of the figures whose distribution tells something.
std::string histograms_text(const Report& report, Letters letters);

}  // namespace ivgpu::bench
