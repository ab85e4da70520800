// Runs a session in its worker: the threads of the channels, the doorbell, and the session's end.
#pragma once

#include "host/session/session.h"

namespace host {

// How a session ended. The value is the worker's exit code.
enum class Served : int { Ended = 0, ProtocolBroken = 3 };

// Runs the session until `control_fd` reads EOF: the broker wants the worker to end, or all processes with the other
// end have gone. The session also ends if the worker has had no broker for too long, or if the guest breaks the
// protocol. The guest signals the eventfd `doorbell_fd` when it wakes a parked channel, answers a callback or opens a
// channel. The calling thread becomes the doorbell thread until the session ends. Preconditions: the driver is
// initialised, and the slot's header and device page are filled.
Served serve(ring::SlotView slot, const Driver& driver, const ServeOptions& options, int doorbell_fd, int control_fd);

}  // namespace host
