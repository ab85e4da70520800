// The statistics of samples: percentiles, from the best to the worst, and their distribution.
#pragma once

#include <cstddef>
#include <vector>

namespace ivgpu::bench {

// One session of several at once.
struct OneSession {
  double p50, p99;
};

// "Worst" is the largest of times and the smallest of rates: 99 of 100 samples reach the 99th percentile of a rate.
struct Summary {
  std::size_t count = 0;
  double best = 0, p50 = 0, p90 = 0, p99 = 0, worst = 0;
  std::vector<double> samples = {};   // the best first; empty where it was read from a file
  std::vector<OneSession> each = {};  // where it is of several sessions
};

// Precondition: there is a sample.
Summary summary_of(std::vector<double> samples, bool more_is_better);

// The sample below which `part` of them lie, by the nearest rank. Precondition: `sorted` has one.
double percentile(const std::vector<double>& sorted, double part);

// Equal steps of the logarithm, since a tail is a hundred times longer than the body.
struct Bins {
  double low, high;
  std::size_t count;
  double edge(std::size_t bin) const;
  std::size_t of(double sample) const;  // samples outside count for the first or the last
};

// From the best samples to the 99th percentile, of all that is given; nothing but the tail is cut off.
Bins bins_for(const std::vector<const Summary*>& summaries, std::size_t count);

// For each bin, how many of the samples lie there.
std::vector<std::size_t> histogram(const std::vector<double>& samples, const Bins& bins);

}  // namespace ivgpu::bench
