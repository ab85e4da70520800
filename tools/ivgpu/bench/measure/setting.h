// The circumstances of a run, as the machine reports them.
#pragma once

#include <string>

#include "tools/ivgpu/bench/report/report.h"

namespace ivgpu::bench {

// Returns processor, kernel, time, NVIDIA's driver, and how processes share the GPU. Leaves fields empty that only a
// measuring program or the broker can fill in.
Setting this_machine(bool simulated);

// The model from the text of /proc/cpuinfo; "an unknown processor" if the text has no model.
std::string processor_of(const std::string& cpuinfo);

// True if an MPS control daemon has its pipe where programs of this environment look for the pipe.
bool mps_is_there();

}  // namespace ivgpu::bench
