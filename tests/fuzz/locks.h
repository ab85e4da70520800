// The locks of the code that is searched, as points of a schedule: fuzz_channels is linked so that its libraries' calls
// of pthread_mutex_lock and the like come here first (tests/fuzz/locks.cc; the linker's --wrap).
#pragma once

namespace fuzz {

// In the thread that is about to take a lock.
void lock_wanted();
// Another has it. True: it may be free now; false: the thread is none of the schedule's and waits as ever.
bool lock_taken();

}  // namespace fuzz
