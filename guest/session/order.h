// The order in which host threads issue is CUDA's order and must survive (docs/design). Thread A posts an event record
// and unlocks a mutex; thread B then posts a wait for that event through another channel: B's must not run first. So
// each object remembers the last posted call that named it, and a thread that uses it through another channel first
// waits until that was executed. In the common case, one thread per stream, this is one comparison.
#pragma once

#include "guest/objects/objects.h"

namespace guest {

class Channel;

// Whether a posted call's record has been executed.
bool executed(Use use);
// Waits for an object's last use by another channel. False: the session is lost.
bool wait_for_object(const Object& object, const Channel& mine);
// Waits for every posted call of every other channel.
bool wait_for_all(const Channel& mine);
// Remembers that a record which names the object was posted. Threads may use one object at a time, in either order, but
// the object remembers one use: so the other's is executed before it is forgotten, and who waits for the one that is
// remembered has waited for both.
void remember(Object& object, Use use);

}  // namespace guest
