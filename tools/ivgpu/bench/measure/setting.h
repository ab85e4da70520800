// The circumstances of a run, from the machine itself.
#pragma once

#include <string>

#include "tools/ivgpu/bench/report/report.h"

namespace ivgpu::bench {

// Processor, kernel, time, NVIDIA's driver, and the manner in which processes share the GPU. Fields that only a
// measuring program or the broker knows are left for them.
Setting this_machine(bool simulated);

// The model of /proc/cpuinfo's text, "an unknown processor" where it names none.
std::string processor_of(const std::string& cpuinfo);

// True if a MPS control daemon has its pipe at the place where programs of this environment look for it.
bool mps_is_there();

}  // namespace ivgpu::bench
