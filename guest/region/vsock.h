// A connection by vsock to the broker of this VM's host, for bells (ring/layout/bells.h). All that knows the address family
// stands here; ivgpu-check asks the same.
#pragma once

#include <cstdint>
#include <string>

namespace guest {

// Connects to a port of the host. The socket, which does not wait; -1: errno says why. Takes a second at most.
int dial_host(std::uint32_t port);
using Dial = int (*)(std::uint32_t port);

// A bell channel by vsock: the socket, once the broker has taken it; -1, and `why` is one sentence with the remedy.
int open_vsock(std::uint32_t port, Dial dial, std::string& why);

}  // namespace guest
