#include "tools/ivgpu/bench/report/histogram.h"

#include <algorithm>
#include <array>

namespace ivgpu::bench {
namespace {

constexpr std::size_t bins_wide = 64;  // fits into 80 columns with the word before it
constexpr std::size_t too_few = 16;    // samples
constexpr std::size_t steps = 8;

constexpr std::array<const char*, steps + 1> blocks = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<const char*, steps + 1> plain = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};

// Every non-zero count is visible: a single sample gets the lowest step.
std::string bars(const std::vector<std::size_t>& counts, Letters letters) {
  const std::size_t most = *std::max_element(counts.begin(), counts.end());
  std::string line;
  for (const std::size_t count : counts) {
    const std::size_t height = count == 0 ? 0 : 1 + count * (steps - 1) / most;
    line += (letters == Letters::Unicode ? blocks : plain)[height];
  }
  return line;
}

std::string axis(const Bins& bins, Unit unit) {
  const std::string low = number_text(bins.low), middle = number_text(bins.edge(bins_wide / 2)),
                    high = number_text(bins.high) + " " + name_of(unit);
  const auto blanks = [](std::size_t whole, std::size_t used) {
    return std::string(whole > used ? whole - used : 1, ' ');
  };
  return "          " + low + blanks(bins_wide / 2, low.size()) + middle +
         blanks(bins_wide - bins_wide / 2, middle.size() + high.size()) + high + "\n";
}

// True if a sample is one call rather than the mean of several calls.
bool has_samples(const Metric& metric) {
  static constexpr std::array<const char*, 9> single = {"launch_issue",
                                                        "launch_synchronize",
                                                        "20_launches_synchronize",
                                                        "launch_stream_synchronize",
                                                        "launch_context_synchronize",
                                                        "launch_event_synchronize",
                                                        "copy_4_bytes_h2d",
                                                        "copy_4_bytes_d2h",
                                                        "empty_call"};
  return std::find(single.begin(), single.end(), metric.name) != single.end();
}

}  // namespace

std::string histogram_text(const Metric& metric, Letters letters) {
  std::vector<const Summary*> summaries;
  for (const auto* side : {&metric.native, &metric.ivgpu})
    if (*side && (*side)->samples.size() >= too_few) summaries.push_back(&**side);
  if (summaries.empty()) return {};
  const Bins bins = bins_for(summaries, bins_wide);
  std::string text = metric.label() + "\n";
  for (const Summary* s : summaries) {
    const bool native = metric.native && s == &*metric.native;
    text += std::string(native ? "  native  " : "  ivgpu   ") + bars(histogram(s->samples, bins), letters) + "\n";
  }
  return text + axis(bins, metric.unit);
}

std::string histograms_text(const Report& report, Letters letters) {
  std::string text;
  for (const Metric& metric : report.metrics)
    if (has_samples(metric)) text += histogram_text(metric, letters);
  if (text.empty()) return {};
  return "\nDistributions, best to 99th percentile (what is slower counts for the last column):\n" + text;
}

}  // namespace ivgpu::bench
