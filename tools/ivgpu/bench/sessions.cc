// Whole processes: the first result of a new one, many at once on one GPU, and one that is idle.
#include <time.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/ivgpu/bench/groups.h"

namespace ivgpu::bench {
namespace {

using Measurers = std::vector<std::unique_ptr<Measurer>>;

// The next samples that a program tells.
Told samples_of(Measurer& measurer, const Runner& runner, Side side) {
  while (const auto line = measurer.line())
    if (const auto told = parse_told(*line); told && told->word == "samples") return *told;
  runner.fail(side, "the measuring program told no samples");
}

Measurers start_several(const Runner& runner, Side side, int count, const std::vector<std::string>& words) {
  Measurers started;
  for (int k = 0; k < count; ++k) started.push_back(std::make_unique<Measurer>(runner, side, words));
  return started;
}

// ---- first results -------------------------------------------------------------------------------------------------

// One after the other, each with a worker that waits for it.
void first_results(const Runner& runner, Side side, int count, Report& report) {
  std::vector<double> times;
  for (int k = 0; k < count; ++k) {
    runner.progress().say(std::string(name_of(side)) + ", start: process " + std::to_string(k + 1) + " of " +
                          std::to_string(count));
    if (side == Side::Ivgpu) runner.settle();
    Measurer process(runner, side, {"start"});
    times.push_back(samples_of(process, runner, side).samples.front());
    process.finish();
  }
  report.figure({.group = "start", .name = "first_result", .unit = Unit::Milliseconds}).side(side) =
      summary_of(times, false);
}

// All at once: most have to wait until a worker has been started for them.
void first_results_at_once(const Runner& runner, Side side, int count, int rounds, Report& report) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    runner.progress().say(std::string(name_of(side)) + ", start: " + std::to_string(count) + " processes at once");
    if (side == Side::Ivgpu) runner.settle();
    for (const auto& process : start_several(runner, side, count, {"start"})) {
      times.push_back(samples_of(*process, runner, side).samples.front());
      process->finish();
    }
  }
  report.figure({.group = "start", .name = "first_result", .unit = Unit::Milliseconds, .sessions = count}).side(side) =
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
  report.figure({.group = "sessions", .name = "launch_synchronize", .unit = Unit::Microseconds, .sessions = count})
      .side(side) = summary;
  report.figure({.group = "sessions", .name = "kernels", .unit = Unit::KernelsPerMillisecond, .sessions = count})
      .side(side) = summary_of({rate}, true);
}

void sessions_at_once(Runner& runner, Side side, int count, const std::string& seconds, Report& report) {
  runner.take_side(side);
  runner.progress().say(std::string(name_of(side)) + ", sessions: " + std::to_string(count) + " at once");
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

// ---- idle ----------------------------------------------------------------------------------------------------------

// What a process has taken of processors so far, all its threads together; 0 where it has gone.
double processor_seconds(pid_t process) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// The broker and its workers.
std::vector<pid_t> host_processes(const Runner& runner) {
  std::vector<pid_t> found = {runner.broker_pid()};
  const auto status = nlohmann::json::parse(runner.broker_status());
  for (const auto& slot : status.at("vms").at(0).at("slots"))
    if (slot.contains("worker")) found.push_back(slot.at("worker").get<pid_t>());
  return found;
}

double processor_seconds(const std::vector<pid_t>& processes) {
  double sum = 0;
  for (const pid_t process : processes) sum += processor_seconds(process);
  return sum;
}

}  // namespace

void measure_start(Runner& runner, Side side, Report& report) {
  const bool quick = runner.quick();
  // Not counted: the first may fill the driver's cache of compiled code, and the disk's.
  Measurer(runner, side, {"start"}).finish();
  first_results(runner, side, quick ? 3 : 10, report);
  first_results_at_once(runner, side, quick ? 4 : 8, quick ? 1 : 2, report);
}

void measure_sessions(Runner& runner, Side side, Report& report) {
  for (const int count : {1, 2, 4, 8}) sessions_at_once(runner, side, count, runner.quick() ? "0.1" : "1", report);
}

void measure_idle(Runner& runner, double seconds, Report& report) {
  constexpr int rounds = 5;  // so that the next call is seen more than once
  constexpr double settle = 0.05;
  Measurer session(runner, Side::Ivgpu, {"idle"});
  session.expect_ready();
  runner.settle();  // from here on no worker comes or goes
  const std::vector<pid_t> processes = host_processes(runner);
  std::vector<double> after;
  double used = 0;
  for (int round = 0; round < rounds; ++round) {
    runner.progress().say("ivgpu, latency: idle for " + number_text(seconds * (rounds - round) / rounds) + " s more");
    runner.pause(settle);
    const double before = processor_seconds(processes);
    runner.pause(seconds / rounds);
    used += processor_seconds(processes) - before;
    session.go();
    after.push_back(samples_of(session, runner, Side::Ivgpu).samples.front());
  }
  session.finish();
  report.figure({.group = "latency", .name = "idle_host_processor", .unit = Unit::Percent}).ivgpu =
      summary_of({used / seconds * 100}, false);
  report.figure({.group = "latency", .name = "call_after_idle", .unit = Unit::Microseconds}).ivgpu =
      summary_of(after, false);
}

}  // namespace ivgpu::bench
