// The loads of `ivgpu bench share`.
#pragma once

#include <string>

namespace measure {

// Prints "ready". For each line on standard input, runs the load `name` for `seconds` and prints four numbers:
// operations a second, then mean, median and 99th percentile of an operation's time in microseconds.
//   wait   an empty kernel and a wait                burst  20 empty kernels and a wait, counted by kernels
//   busy   20 kernels of 20 us and a wait            long   4 kernels of 0.5 ms and a wait
//   train  400 short kernels and a wait              infer  80 short kernels and a wait, every 10 ms
//   full   8 kernels of 1.25 ms on all multiprocessors, and a wait
//   copy   16 MiB of pinned memory to the GPU
// `rounds_per_us`: the GPU's speed, measured once by speed() for all compared programs. If each program measured the
// speed, their kernels would differ in length.
void load(const std::string& name, double seconds, double rounds_per_us);

// Measures and prints `rounds_per_us`.
void speed();

}  // namespace measure
