// Measures an idle process: its processor time, and the duration of its next call.
//
// NVIDIA's driver starts a thread in each process that uses the driver, workers included. The thread wakes ten times a
// second until the process ends. The report therefore shows the time of ivgpu's own threads as a separate figure.
#include <nlohmann/json.hpp>

#include "tools/ivgpu/bench/measure/groups.h"
#include "tools/ivgpu/bench/measure/processor_time.h"

namespace ivgpu::bench {
namespace {

// Returns the broker and its workers; natively, the measuring process itself.
std::vector<pid_t> processes_of(const Runner& runner, Side side, const Measurer& session) {
  if (side == Side::Native) return {session.pid()};
  std::vector<pid_t> found = {runner.broker_pid()};
  const auto status = nlohmann::json::parse(runner.broker_status());
  for (const auto& slot : status.at("vms").at(0).at("slots"))
    if (slot.contains("worker")) found.push_back(slot.at("worker").get<pid_t>());
  return found;
}

void add(Report& report, Side side, const char* name, Unit unit, const std::vector<double>& samples) {
  report.metric({.group = "latency", .name = name, .unit = unit}).side(side) = summary_of(samples, false);
}

}  // namespace

void measure_idle(Runner& runner, Side side, double seconds, Report& report) {
  constexpr int rounds = 5;  // measures the next call several times
  constexpr double settle = 0.05;
  Measurer session(runner, side, {"idle"});
  session.expect_ready();
  if (side == Side::Ivgpu) runner.settle();  // no worker starts or ends after this point
  const std::vector<pid_t> processes = processes_of(runner, side, session);
  std::vector<double> after;
  ProcessorTime sum;
  for (int round = 0; round < rounds; ++round) {
    runner.progress().show(std::string(name_of(side)) + ", latency: idle for " +
                           number_text(seconds * (rounds - round) / rounds) + " s more");
    runner.pause(settle);
    const ProcessorTime before = processor_time_of(processes);
    runner.pause(seconds / rounds);
    const ProcessorTime now = processor_time_of(processes);
    sum.all += now.all - before.all, sum.own += now.own - before.own;
    session.go();
    after.push_back(samples_of(session, runner, side).samples.front());
  }
  session.finish();
  add(report, side, "idle_host_processor", Unit::Percent, {sum.all / seconds * 100});
  if (side == Side::Ivgpu) add(report, side, "idle_own_processor", Unit::Percent, {sum.own / seconds * 100});
  add(report, side, "call_after_idle", Unit::Microseconds, after);
}

}  // namespace ivgpu::bench
