// A session's life in its worker: the channels' threads, the doorbell, the end.
#pragma once

#include "host/session/session.h"

namespace host {

// How a session ended; the worker's exit code.
enum class Served : int { Ended = 0, ProtocolBroken = 3 };

// Runs the session until `control_fd` reads EOF (the broker wants the worker to end, or nobody has its end of the
// socket), until the worker has had no broker for too long, or the guest breaks the protocol. `doorbell_fd` is an
// eventfd that the guest rings when it wakes a parked channel, answers a lane or opens a channel. The caller's thread
// becomes the bell thread until the session ends. Preconditions: the driver is initialised, and the slot's header and
// device page are filled.
Served serve(ring::SlotView slot, const Driver& driver, const ServeOptions& options, int doorbell_fd, int control_fd);

}  // namespace host
