// The order of calls across the program's threads. CUDA executes calls in the order in which threads issue them, but
// here each thread has its own channel. Example: thread A posts an event record and unlocks a mutex; thread B then
// posts a wait for that event. B's call must not run first. Each object therefore remembers the last posted call that
// named it. A thread that uses the object through another channel first waits until that call was executed. For one
// thread per stream this is one comparison.
#pragma once

#include "guest/objects/objects.h"

namespace guest {

class Channel;

// Whether a posted call's record has been executed.
bool executed(Use use);
// Waits for an object's last use by another channel. False: the session is lost or suspended.
bool wait_for_object(const Object& object, const Channel& mine);
// Waits for every posted call of every other channel. False: the session is lost or suspended.
bool wait_for_all(const Channel& mine);
// Remembers that a record which names the object was posted. Two threads may use an object at the same time, but the
// object remembers one use. This function therefore first waits for the other channel's use; a later wait for the
// remembered use then covers both.
void remember(Object& object, Use use);

}  // namespace guest
