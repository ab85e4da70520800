// Statistics of samples: percentiles, ordered from the best sample to the worst, and the distribution.
#pragma once

#include <cstddef>
#include <vector>

namespace ivgpu::bench {

// The statistics of one session among several concurrent sessions.
struct OneSession {
  double p50, p99;
};

// The best samples come first: the smallest times, or the largest rates. 99 of 100 samples are at least as good as the
// 99th percentile.
struct Summary {
  std::size_t count = 0;
  double best = 0, p50 = 0, p90 = 0, p99 = 0, worst = 0;
  std::vector<double> samples = {};   // the best first; empty if the summary comes from a file
  std::vector<OneSession> each = {};  // one entry per session, for several sessions
};

// Precondition: `samples` is not empty.
Summary summary_of(std::vector<double> samples, bool more_is_better);

// The sample below which the fraction `part` of the samples lies, by nearest rank. Precondition: `sorted` is not empty.
double percentile(const std::vector<double>& sorted, double part);

// Bins of equal logarithmic width, since the tail is a hundred times longer than the body.
struct Bins {
  double low, high;
  std::size_t count;
  double edge(std::size_t bin) const;
  std::size_t of(double sample) const;  // samples outside the range belong to the first or last bin
};

// Bins from the best sample to the 99th percentile of all summaries; only the tail is cut off.
Bins bins_for(const std::vector<const Summary*>& summaries, std::size_t count);

// The number of samples in each bin.
std::vector<std::size_t> histogram(const std::vector<double>& samples, const Bins& bins);

}  // namespace ivgpu::bench
