// A VM's ivshmem server: the socket to which QEMU's ivshmem-doorbell device and guest processes on this machine
// connect.
//
// Each client gets, in messages of eight bytes with at most one descriptor: the protocol's version, its own id, the
// region, the host's peers (the broker, then each slot) with the eventfds that ring them, and its own id once for each
// of its interrupts, with the eventfd that raises it: the n-th such message is vector n - 1. Clients are not announced
// to each other: the other users of a region are not their business.
//
// QEMU reports an error for each eventfd beyond its device's `vectors=` and closes it; a vector for which none comes is
// never raised.
//
// Trust: the socket's permissions decide which clients come in. A client that does not read, that sends anything, or is
// one too many, is dropped. SO_PEERCRED names the process that connected; when that process is gone, or its connection
// is, so is the peer.
//
// A connection whose greeting is over outlives the broker where there is a store: QEMU cannot greet twice. The next broker
// goes on with it under the same number.
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
#include "ring/layout/layout.h"

namespace host::broker {

struct Announcement {
  std::int64_t value;
  int fd;  // -1: none; stays its owner's
};

struct ServerOptions {
  ListenerOptions socket;
  std::size_t connections = 128;
  int memfd = -1;
  std::vector<Announcement> host_peers;
  VmStore store;  // where its connections are kept for the next broker, as "peer/N"
  std::uint32_t first_peer = ring::first_guest_peer;
  std::vector<int> guest_interrupts;  // eventfds, the same for each client; they stay their owner's
};

class IvshmemServer {
 public:
  using PeerGone = std::function<void(std::uint32_t peer)>;

  // Null on failure, and `error` is one sentence: another broker serves this socket, the path is no socket's, ...
  static std::unique_ptr<IvshmemServer> listen(EventLoop& loop, ServerOptions options, PeerGone gone,
                                               std::string& error);
  ~IvshmemServer();
  IvshmemServer(const IvshmemServer&) = delete;
  IvshmemServer& operator=(const IvshmemServer&) = delete;

  std::size_t connected() const { return clients_.size(); }
  bool has(std::uint32_t peer) const { return clients_.count(peer) != 0; }
  // From now on; clients that are connected stay.
  void bound_connections(std::size_t most) { options_.connections = most; }
  void shut_door() { listener_.reset(); }

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
