// The order of calls across the program's threads. CUDA executes calls in the order in which threads issue them, but
// here each thread has its own channel. Example: thread A posts an event record and unlocks a mutex; thread B then
// posts a wait for that event. B's call must not run first. Each object therefore remembers the last posted call that
// used the object. A thread that uses the object through another channel first waits until the worker has executed that
// call. If each stream is used by one thread, this costs one comparison.
#pragma once

#include "guest/objects/objects.h"

namespace guest {

class Channel;

// Returns whether the worker has executed a posted call's record.
bool executed(Use use);
// Waits for an object's last use by another channel. Returns false if the session is lost or suspended.
bool wait_for_object(const Object& object, const Channel& mine);
// Waits for every posted call of every other channel. Returns false if the session is lost or suspended.
bool wait_for_all(const Channel& mine);
// Remembers that a record that uses the object was posted. Two threads may use an object at the same time, but the
// object remembers only one use. This function therefore first waits for the other channel's use; a later wait for the
// remembered use then covers both.
void remember(Object& object, Use use);

}  // namespace guest
