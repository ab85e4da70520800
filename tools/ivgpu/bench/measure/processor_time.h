// The processor time of processes, from /proc. The kernel counts a sleeping thread exactly, and a running thread up to
// its latest timer tick, so a caller waits until the threads sleep.
#pragma once

#include <sys/types.h>

#include <vector>

namespace ivgpu::bench {

// Seconds of processor time since the start of the processes.
struct ProcessorTime {
  double all = 0, own = 0;  // `own` excludes the driver's threads
};

// Processes that have ended add nothing.
ProcessorTime processor_time_of(const std::vector<pid_t>& processes);

}  // namespace ivgpu::bench
