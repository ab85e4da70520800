// What `ivgpu bench` measures, a function for each word of its command line; each adds its figures of one side to the
// report, and takes the runner's side anew where it needs to.
#pragma once

#include "tools/ivgpu/bench/report.h"
#include "tools/ivgpu/bench/runner.h"

namespace ivgpu::bench {

void measure_latency(Runner& runner, Side side, Report& report);
void measure_copy(Runner& runner, Side side, Report& report);
void measure_start(Runner& runner, Side side, Report& report);
void measure_sessions(Runner& runner, Side side, Report& report);

// A process that does nothing for so long, and its next call: what it takes of a processor natively, and what broker
// and workers take.
void measure_idle(Runner& runner, Side side, double seconds, Report& report);

// The GPU's name and the version of CUDA, and with the side of ivgpu the broker's switches.
void ask_about(Runner& runner, Side side, Setting& setting);

// A line of the measuring program, as program/timing.h tells them.
struct Told {
  std::string word, name;
  std::uint64_t bytes = 0;
  std::vector<double> samples;
  std::string reason;
};
// Nothing where it is no such line.
std::optional<Told> parse_told(const std::string& line);
// The next samples that a program tells; an Error where there are none.
Told samples_of(Measurer& measurer, const Runner& runner, Side side);

}  // namespace ivgpu::bench
