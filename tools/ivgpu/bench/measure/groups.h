// The measurements of `ivgpu bench`, one function per group of the command line. Each function adds the figures of one
// side to the report, and restarts the runner's side where necessary.
#pragma once

#include "tools/ivgpu/bench/measure/runner.h"
#include "tools/ivgpu/bench/report/report.h"

namespace ivgpu::bench {

void measure_latency(Runner& runner, Side side, Report& report);
void measure_copy(Runner& runner, Side side, Report& report);
void measure_kernels(Runner& runner, Side side, Report& report);
void measure_memory(Runner& runner, Side side, Report& report);
void measure_start(Runner& runner, Side side, Report& report);
void measure_sessions(Runner& runner, Side side, Report& report);

// Runs one part of the measuring program, and adds its figures to the group of the same name.
void run_part(Runner& runner, Side side, const std::string& group, Report& report);

// The worker of a program, from the broker's status. Returns nullopt if the program has no worker.
std::optional<pid_t> worker_of(const std::string& status, pid_t program);

// Measures a process that is idle for `seconds`: the processor time of the process (natively) or of broker and workers
// (through ivgpu), and the duration of the process's next call.
void measure_idle(Runner& runner, Side side, double seconds, Report& report);

// Fills in the GPU's name and the CUDA version and, on the side of ivgpu, the broker's switches.
void ask_about(Runner& runner, Side side, Setting& setting);

// A line of the measuring program; program/timing.h describes the formats.
struct Reported {
  std::string word, name;
  std::uint64_t bytes = 0;
  std::vector<double> samples;
  std::string reason;
};
// Returns nullopt if the line has another format.
std::optional<Reported> parse_reported(const std::string& line);
// Reads the program's next samples. Throws an Error if there are none.
Reported samples_of(Measurer& measurer, const Runner& runner, Side side);

}  // namespace ivgpu::bench
