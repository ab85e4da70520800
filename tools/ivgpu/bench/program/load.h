// The loads of `ivgpu bench share`.
#pragma once

#include <string>

namespace measure {

// Says "ready"; then, for each line that arrives, does what `name` says for so many seconds and tells four numbers: how
// often a second, and of one time its mean, median and 99th percentile in microseconds.
//   wait   an empty kernel and a wait                burst  20 empty kernels and a wait, counted by kernels
//   busy   20 kernels, one each 20 us, and a wait    long   4 kernels of 0.5 ms and a wait
//   train  400 short kernels and a wait              infer  80 of them and a wait, every 10 ms
//   full   kernels of 1.25 ms on all multiprocessors, 8 and a wait
//   copy   16 MiB of pinned memory to the GPU
// `rounds_per_us`: how fast the GPU is, as speed() told it once for all programs that are compared: if each of them
// measured it, each would have kernels of other lengths.
void load(const std::string& name, double seconds, double rounds_per_us);

// Tells that one number.
void speed();

}  // namespace measure
