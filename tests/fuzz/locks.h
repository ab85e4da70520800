// Makes the locks of the tested code points of the schedule: the linker's --wrap redirects pthread_mutex_lock and
// similar calls of fuzz_channels to tests/fuzz/locks.cc.
#pragma once

namespace fuzz {

// Called in the thread that is about to take a lock.
void lock_wanted();
// Called when another thread holds the lock. True: try again. False: the thread is not scheduled, and waits as usual.
bool lock_taken();

}  // namespace fuzz
