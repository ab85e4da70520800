// vsock, by which programs of a VM reach this machine without a network: a VM has a number there, its CID, which its
// kernel's own connections carry and which it cannot choose. All that knows the address family stands here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "host/base/fd.h"

namespace host::broker {

inline constexpr std::uint32_t vsock_host = 2;  // every host's CID, to its own VMs
inline constexpr std::uint32_t vsock_local = 1;

// A bound socket, close-on-exec and non-blocking. Empty on failure, and `error` is half a sentence with the remedy; `is_taken`:
// another has the port, who may let go of it.
struct BoundVsock {
  Fd socket;
  bool is_taken = false;
  std::string error = {};
};
BoundVsock bind_vsock(std::uint32_t port);

// Whether it is a socket of vsock that is bound to this port.
bool is_at_vsock(int socket, std::uint32_t port);

// Why this process has no vsock, with the remedy; "" where it has.
std::string vsock_missing();

// The CID of a connection's other end; nothing where it is no connection of vsock, or the kernel does not tell any more.
std::optional<std::uint32_t> cid_of_peer(int socket);

}  // namespace host::broker
