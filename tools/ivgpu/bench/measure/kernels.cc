// Measures small kernels, and a worker's processor time for each launch.
#include <nlohmann/json.hpp>

#include "tools/ivgpu/bench/measure/groups.h"
#include "tools/ivgpu/bench/measure/processor_time.h"

namespace ivgpu::bench {
namespace {

// The launches of a round take tens of milliseconds, since a round's end costs the worker some microseconds.
constexpr int launches = 10'000, quick_launches = 500;
constexpr int rounds = 3;

// The time after which a worker without work sleeps, and the kernel has counted the worker's processor time.
constexpr double settle = 0.05;

double processor_seconds(const Runner& runner, pid_t worker) {
  runner.pause(settle);
  return processor_time_of({worker}).own;
}

// The processor time per launch, in microseconds, for each line of the program `launches`.
class WorkerTime {
 public:
  WorkerTime(const Runner& runner, int count) : runner_(runner), count_(count) {}

  std::vector<double> back_to_back, launch_synchronize;

  void measure(Measurer& program, pid_t worker) {
    double before = processor_seconds(runner_, worker);
    for (int round = 0; round < rounds; ++round)
      for (auto* samples : {&back_to_back, &launch_synchronize}) {
        program.go();
        samples_of(program, runner_, Side::Ivgpu);
        const double now = processor_seconds(runner_, worker);
        samples->push_back((now - before) / count_ * 1e6);
        before = now;
      }
  }

 private:
  const Runner& runner_;
  const int count_;
};

void add(Report& report, const char* name, const std::vector<double>& samples) {
  report.metric({.group = "kernels", .name = name}).ivgpu = summary_of(samples, false);
}

}  // namespace

std::optional<pid_t> worker_of(const std::string& status, pid_t program) {
  const auto document = nlohmann::json::parse(status);
  for (const auto& slot : document.at("vms").at(0).at("slots"))
    if (slot.contains("worker") && slot.contains("owner") && slot.at("owner").at("process") == program)
      return slot.at("worker").get<pid_t>();
  return std::nullopt;
}

void measure_kernels(Runner& runner, Side side, Report& report) {
  run_part(runner, side, "kernels", report);
  if (side == Side::Native) return;
  runner.progress().show("ivgpu, kernels: the worker's processor time");
  const int count = runner.quick() ? quick_launches : launches;
  Measurer program(runner, side, {"launches", std::to_string(count)});
  program.expect_ready();
  runner.settle();
  const auto worker = worker_of(runner.broker_status(), program.pid());
  if (!worker) runner.fail(side, "the broker reports no worker of the measuring program");
  WorkerTime time(runner, count);
  time.measure(program, *worker);
  program.finish();
  add(report, "worker_back_to_back", time.back_to_back);
  add(report, "worker_launch_synchronize", time.launch_synchronize);
}

}  // namespace ivgpu::bench
