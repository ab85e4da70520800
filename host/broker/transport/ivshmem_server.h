// A VM's ivshmem server: QEMU's ivshmem-doorbell device and guest processes on this machine connect to its socket.
//
// Each client gets messages of eight bytes with at most one descriptor, in this order:
// * the protocol version, the client's own ID, and the region;
// * the ID of each host peer (the broker, then each slot), with the eventfd that signals it;
// * its own ID once per interrupt, with the eventfd that raises it: the n-th message is vector n - 1.
//
// Clients are not announced to each other, because they need not know the other users of a region.
//
// QEMU reports an error for each eventfd beyond its device's `vectors=` and closes it. A vector without an eventfd is
// never raised.
//
// Trust: the socket's permissions decide which clients may connect. A client that does not read, that sends anything,
// or exceeds the limit, is dropped. SO_PEERCRED names its process; the peer ends with its process or its connection.
//
// With a store, a connection outlives the broker after the handshake, because QEMU cannot repeat it. The next broker
// adopts it under the same number.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/fd.h"
#include "host/base/log_limiter.h"
#include "host/base/process/fd_store.h"
#include "host/base/process/listener.h"
#include "host/base/result.h"
#include "ring/layout/layout.h"

namespace host::broker {

struct Announcement {
  std::int64_t value;
  int fd;  // -1: none; the caller keeps it
};

struct ServerOptions {
  ListenerOptions socket;
  std::size_t connections = 128;
  int memfd = -1;
  std::vector<Announcement> host_peers;
  VmStore store;  // keeps connections for the next broker, as "peer/N"
  std::uint32_t first_peer = ring::first_guest_peer;
  std::vector<int> guest_interrupts;  // eventfds, the same for each client; the caller keeps them
};

class IvshmemServer {
 public:
  using PeerGone = std::function<void(std::uint32_t peer)>;

  // The error is one sentence: another broker serves this socket, the path is not a socket, ...
  static Result<std::unique_ptr<IvshmemServer>> listen(EventLoop& loop, ServerOptions options, PeerGone gone);
  ~IvshmemServer();
  IvshmemServer(const IvshmemServer&) = delete;
  IvshmemServer& operator=(const IvshmemServer&) = delete;

  std::size_t connected() const { return clients_.size(); }
  bool has(std::uint32_t peer) const { return clients_.count(peer) != 0; }
  // Changes the limit; clients that are connected stay.
  void bound_connections(std::size_t most) { options_.connections = most; }
  void stop_admitting() { listener_.reset(); }

 private:
  struct Client;
  IvshmemServer(EventLoop& loop, ServerOptions options, PeerGone gone);
  void admit(Fd socket);
  void adopt_connections();
  Client& enter(std::uint32_t peer, Fd socket);
  void watch(Client& client);
  std::uint32_t free_peer();
  void send_some(Client& client);
  void drop(std::uint32_t peer, const char* why);

  EventLoop& loop_;
  ServerOptions options_;
  PeerGone gone_;
  std::unique_ptr<Listener> listener_;
  std::map<std::uint32_t, std::unique_ptr<Client>> clients_;
  std::uint32_t next_peer_;
  LogLimiter refusals_;
};

}  // namespace host::broker
