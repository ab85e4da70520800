// Where a run takes place, as the machine itself tells.
#pragma once

#include <string>

#include "tools/ivgpu/bench/report.h"

namespace ivgpu::bench {

// Processor, kernel, time, NVIDIA's driver, and how processes share the GPU. What only a measuring program or the
// broker knows is left for them.
Setting this_machine(bool simulated);

// The model of /proc/cpuinfo's text, "an unknown processor" where it names none.
std::string processor_of(const std::string& cpuinfo);

// Whether a MPS control daemon has its pipe where programs of this environment look for it.
bool mps_is_there();

}  // namespace ivgpu::bench
