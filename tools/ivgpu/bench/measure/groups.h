// The measurements of `ivgpu bench`, a function for each word of its command line; each adds its figures of one side to
// the report, and takes the runner's side anew where it needs to.
#pragma once

#include "tools/ivgpu/bench/measure/runner.h"
#include "tools/ivgpu/bench/report/report.h"

namespace ivgpu::bench {

void measure_latency(Runner& runner, Side side, Report& report);
void measure_copy(Runner& runner, Side side, Report& report);
void measure_memory(Runner& runner, Side side, Report& report);
void measure_start(Runner& runner, Side side, Report& report);
void measure_sessions(Runner& runner, Side side, Report& report);

// A process that does nothing for so long, and its next call: its processor time natively, and that of broker and
// workers.
void measure_idle(Runner& runner, Side side, double seconds, Report& report);

// The GPU's name and the version of CUDA, and with the side of ivgpu the broker's switches.
void ask_about(Runner& runner, Side side, Setting& setting);

// A line of the measuring program, in the forms of program/timing.h.
struct Reported {
  std::string word, name;
  std::uint64_t bytes = 0;
  std::vector<double> samples;
  std::string reason;
};
// Nothing if it is no such line.
std::optional<Reported> parse_reported(const std::string& line);
// The next samples of a program; an Error if there are none.
Reported samples_of(Measurer& measurer, const Runner& runner, Side side);

}  // namespace ivgpu::bench
