// Measures whole processes: the first result of a new process, and several processes that share one GPU.
#include <algorithm>
#include <memory>

#include "tools/ivgpu/bench/measure/groups.h"

namespace ivgpu::bench {
namespace {

using Measurers = std::vector<std::unique_ptr<Measurer>>;

Measurers start_several(const Runner& runner, Side side, int count, const std::vector<std::string>& words) {
  Measurers started;
  for (int k = 0; k < count; ++k) started.push_back(std::make_unique<Measurer>(runner, side, words));
  return started;
}

// ---- first results -------------------------------------------------------------------------------------------------

// Starts the processes one after the other. A spare worker waits for each process.
void first_results(const Runner& runner, Side side, int count, Report& report) {
  std::vector<double> times;
  for (int k = 0; k < count; ++k) {
    runner.progress().show(std::string(name_of(side)) + ", start: process " + std::to_string(k + 1) + " of " +
                           std::to_string(count));
    if (side == Side::Ivgpu) runner.settle();
    Measurer process(runner, side, {"start"});
    times.push_back(samples_of(process, runner, side).samples.front());
    process.finish();
  }
  report.metric({.group = "start", .name = "first_result", .unit = Unit::Milliseconds}).side(side) =
      summary_of(times, false);
}

// Starts all processes at once. Most of them wait until the broker has started a worker.
void first_results_at_once(const Runner& runner, Side side, int count, int rounds, Report& report) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    runner.progress().show(std::string(name_of(side)) + ", start: " + std::to_string(count) + " processes at once");
    if (side == Side::Ivgpu) runner.settle();
    for (const auto& process : start_several(runner, side, count, {"start"})) {
      times.push_back(samples_of(*process, runner, side).samples.front());
      process->finish();
    }
  }
  report.metric({.group = "start", .name = "first_result", .unit = Unit::Milliseconds, .sessions = count}).side(side) =
      summary_of(times, false);
}

// ---- sessions at once ----------------------------------------------------------------------------------------------

void add_sessions(Report& report, Side side, const std::vector<std::vector<double>>& waits, double rate) {
  const int count = static_cast<int>(waits.size());
  std::vector<double> all;
  std::vector<OneSession> each;
  for (const auto& samples : waits) {
    all.insert(all.end(), samples.begin(), samples.end());
    const Summary one = summary_of(samples, false);
    each.push_back({one.p50, one.p99});
  }
  Summary summary = summary_of(all, false);
  summary.each = each;
  report.metric({.group = "sessions", .name = "launch_synchronize", .unit = Unit::Microseconds, .sessions = count})
      .side(side) = summary;
  report.metric({.group = "sessions", .name = "kernels", .unit = Unit::KernelsPerMillisecond, .sessions = count})
      .side(side) = summary_of({rate}, true);
}

void sessions_at_once(Runner& runner, Side side, int count, const std::string& seconds, Report& report) {
  runner.take_side(side);
  runner.progress().show(std::string(name_of(side)) + ", sessions: " + std::to_string(count) + " at once");
  const Measurers processes = start_several(runner, side, count, {"session", seconds});
  for (const auto& process : processes) process->expect_ready();
  if (side == Side::Ivgpu) runner.settle();
  for (const auto& process : processes) process->go();
  std::vector<std::vector<double>> waits;
  double rate = 0;
  for (const auto& process : processes) {
    waits.push_back(samples_of(*process, runner, side).samples);
    rate += samples_of(*process, runner, side).samples.front();
    process->finish();
  }
  add_sessions(report, side, waits, rate);
}

}  // namespace

void measure_start(Runner& runner, Side side, Report& report) {
  const bool quick = runner.quick();
  // The first run is not counted: it may fill the disk cache and the driver's cache of compiled code.
  Measurer(runner, side, {"start"}).finish();
  first_results(runner, side, quick ? 3 : 10, report);
  first_results_at_once(runner, side, quick ? 4 : 8, quick ? 1 : 2, report);
}

void measure_sessions(Runner& runner, Side side, Report& report) {
  for (const int count : {1, 2, 4, 8}) sessions_at_once(runner, side, count, runner.quick() ? "0.1" : "1", report);
}

}  // namespace ivgpu::bench
