// A full memory fence on behalf of all threads of the process, by membarrier(2). The fence is for protocols in which
// one thread is fast and has only a compiler fence, and the other threads are rare and slow. It costs a system call and
// an interrupt of each processor that runs a thread of the process (0.3 us on two processors).
#pragma once

namespace guest {

// Registers the process with the kernel, unless it is registered. The first call may take some milliseconds in a process
// with threads. Returns false if the kernel or a seccomp filter refuses. Safe from any thread.
bool can_fence_process();
// Makes each running thread of the process pass a full fence before this function returns. Preconditions:
// can_fence_process() returned true in this process.
void process_fence();

}  // namespace guest
