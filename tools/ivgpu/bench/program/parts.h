// The measurements, a function for each word of the command line.
#pragma once

namespace measure {

// These three say "ready" and wait for a line before they measure; `quick`: few samples.
// Launches, waits, queries, small copies, an allocation.
void latency(bool quick);

// Copies of many sizes, of pinned and pageable memory, both ways.
void copy(bool quick);

// Registered memory and its copies, kernels that read memory of the host or sample a texture, virtual memory, pools.
void memory(bool quick);

// This process's first call until the first result is on the host; `library` is opened meanwhile.
void start(const char* library);

// Says "ready" and waits for a line; then launches and waits for `seconds`, half of them one kernel at a time.
void session(double seconds);

// Says "ready", and for each line that arrives times one launch with its wait.
void idle();

}  // namespace measure
