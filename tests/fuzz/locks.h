// Locks of the tested code as points of the schedule: the linker's --wrap sends calls of pthread_mutex_lock and the
// like in fuzz_channels to tests/fuzz/locks.cc.
#pragma once

namespace fuzz {

// Called in the thread that is about to take a lock.
void lock_wanted();
// Called when the lock is held. True: try again; false: the thread is not scheduled, and waits as usual.
bool lock_taken();

}  // namespace fuzz
