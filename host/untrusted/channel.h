// One channel of a session: receives records, executes them in order, and replies.
#pragma once

#include <atomic>
#include <cstdint>

#include "host/session/session.h"

namespace host {

// Runs on the channel's own thread until `stop`, or until the guest breaks the protocol (session.protocol.broken).
void serve_channel(Session& session, std::uint32_t channel, const std::atomic<bool>& stop);

}  // namespace host
