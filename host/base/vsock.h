// vsock: programs in a VM reach this machine without a network. The VM's kernel puts the VM's CID on every connection,
// and programs cannot choose it. No other file knows this address family.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "host/base/fd.h"

namespace host::broker {

inline constexpr std::uint32_t vsock_host = 2;  // every host's CID, to its own VMs
inline constexpr std::uint32_t vsock_local = 1;

// A bound socket, close-on-exec and non-blocking. If it is empty, `error` is half a sentence with the remedy;
// `is_taken` means that another program holds the port and may release it.
struct BoundVsock {
  Fd socket;
  bool is_taken = false;
  std::string error = {};
};
[[nodiscard]] BoundVsock bind_vsock(std::uint32_t port);

// True if `socket` is a vsock socket bound to this port.
[[nodiscard]] bool is_at_vsock(int socket, std::uint32_t port);

// Why this process cannot use vsock, with the remedy; "" if it can.
std::string vsock_missing();

// Returns the CID of the peer. Nothing if the socket is no vsock connection, or the kernel does not know it any more.
[[nodiscard]] std::optional<std::uint32_t> cid_of_peer(int socket);

}  // namespace host::broker
