#include "tools/ivgpu/bench/report/statistics.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace ivgpu::bench {

double percentile(const std::vector<double>& sorted, double part) {
  const auto rank = static_cast<std::ptrdiff_t>(std::ceil(part * static_cast<double>(sorted.size()) - 1e-9));
  const auto last = static_cast<std::ptrdiff_t>(sorted.size()) - 1;
  return sorted[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(rank - 1, 0, last))];
}

Summary summary_of(std::vector<double> samples, bool more_is_better) {
  if (more_is_better)
    std::sort(samples.begin(), samples.end(), std::greater<>());
  else
    std::sort(samples.begin(), samples.end());
  Summary summary{.count = samples.size(),
                  .best = samples.front(),
                  .p50 = percentile(samples, 0.5),
                  .p90 = percentile(samples, 0.9),
                  .p99 = percentile(samples, 0.99),
                  .worst = samples.back()};
  summary.samples = std::move(samples);
  return summary;
}

double Bins::edge(std::size_t bin) const {
  return low * std::pow(high / low, static_cast<double>(bin) / static_cast<double>(count));
}

std::size_t Bins::of(double sample) const {
  if (!(sample > low)) return 0;
  const double place = std::log(sample / low) / std::log(high / low) * static_cast<double>(count);
  return place >= static_cast<double>(count) ? count - 1 : static_cast<std::size_t>(place);
}

Bins bins_for(const std::vector<const Summary*>& summaries, std::size_t count) {
  // A measured time may be 0, which has no logarithm.
  constexpr double least = 1e-3;
  double low = HUGE_VAL, high = least;
  for (const Summary* s : summaries) {
    low = std::min({low, s->best, s->p99});
    high = std::max({high, s->best, s->p99});
  }
  low = std::max(low, least);
  return {low, std::max(high, low * 1.1), count};
}

std::vector<std::size_t> histogram(const std::vector<double>& samples, const Bins& bins) {
  std::vector<std::size_t> counts(bins.count);
  for (const double sample : samples) ++counts[bins.of(sample)];
  return counts;
}

}  // namespace ivgpu::bench
