// The measurements, one function per word of the command line.
#pragma once

namespace measure {

// latency(), copy(), memory() and small_kernels() print "ready" and wait for a line before they measure. `quick` takes few samples.
// latency() measures launches, waits, queries, small copies and an allocation.
void latency(bool quick);

// Copies of many sizes, of pinned and pageable memory, in both directions.
void copy(bool quick);

// Registered memory and copies of it, kernels that read host memory or sample a texture, virtual memory, and pools.
void memory(bool quick);

// Waits for one empty kernel, empty kernels back to back, small copies, and the duration of asynchronous calls.
void small_kernels(bool quick);

// Prints "ready". For each line on standard input, times `count` empty kernels: with one wait at the end for the first
// line, with a wait after each kernel for the second line, and so on in turn.
void launches(int count);

// Measures from this process's first call until the first result is on the host. Opening `library` is included.
void start(const char* library);

// Prints "ready" and waits for a line. Then launches and waits for `seconds`; during half of that time, one kernel at a
// time.
void session(double seconds);

// Prints "ready". For each line on standard input, times one launch with its wait.
void idle();

}  // namespace measure
