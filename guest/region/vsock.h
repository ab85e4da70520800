// A vsock connection to the broker of this VM's host, for doorbells (ring/layout/doorbell_channel.h). No other file
// uses this address family. ivgpu-check uses this file, too.
#pragma once

#include <cstdint>
#include <string>

namespace guest {

// Connects to a port of the host. Returns a non-blocking socket, or -1 and errno. Takes at most a second.
int dial_host(std::uint32_t port);
using Dial = int (*)(std::uint32_t port);

// Opens a doorbell channel by vsock. Returns the socket once the broker has accepted it. On failure returns -1, and
// `why` is one sentence with the remedy.
int open_vsock(std::uint32_t port, Dial dial, std::string& why);

}  // namespace guest
