// A vsock connection to the broker of this VM's host, for doorbells (ring/layout/doorbell_channel.h). No other file knows this
// address family; ivgpu-check uses this one, too.
#pragma once

#include <cstdint>
#include <string>

namespace guest {

// Connects to a port of the host. Returns a non-blocking socket, or -1 and errno. Takes a second at most.
int dial_host(std::uint32_t port);
using Dial = int (*)(std::uint32_t port);

// A doorbell channel by vsock: the socket, once the broker has accepted it. -1: `why` is one sentence with the remedy.
int open_vsock(std::uint32_t port, Dial dial, std::string& why);

}  // namespace guest
