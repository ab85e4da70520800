#include "host/broker/transport/ivshmem_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "host/base/fd_message.h"
#include "host/base/process/pidfd.h"
#include "ring/layout/layout.h"

namespace host::broker {
namespace {

constexpr std::int64_t protocol_version = 0;
constexpr std::int64_t region_follows = -1;
constexpr std::uint32_t last_peer = 65535;  // the doorbell register holds 16-bit IDs

// QEMU reads these messages while it starts and does nothing else: a client that has not read them by then never will.
constexpr auto setup_patience = std::chrono::seconds(5);

enum class Sent { Yes, Later, Failed };

Sent send_message(int socket, const Announcement& what) {
  const std::int64_t value = what.value;  // x86-64 is little-endian, as the protocol is
  const ssize_t sent = send_with_fd(socket, &value, sizeof value, what.fd);
  if (sent == static_cast<ssize_t>(sizeof value)) return Sent::Yes;
  return sent < 0 && (errno == EAGAIN || errno == EINTR) ? Sent::Later : Sent::Failed;
}

}  // namespace

struct IvshmemServer::Client {
  std::uint32_t peer;
  Fd socket, process;
  pid_t pid = 0;
  std::vector<Announcement> messages;
  std::size_t sent = 0;
  EventLoop::Id socket_watch = 0, process_watch = 0, timer = 0;
};

IvshmemServer::IvshmemServer(EventLoop& loop, ServerOptions options, PeerGone gone)
    : loop_(loop), options_(std::move(options)), gone_(std::move(gone)), next_peer_(options_.first_peer) {}

Result<std::unique_ptr<IvshmemServer>> IvshmemServer::listen(EventLoop& loop, ServerOptions options, PeerGone gone) {
  std::unique_ptr<IvshmemServer> server(new IvshmemServer(loop, std::move(options), std::move(gone)));
  IvshmemServer& self = *server;
  auto listener = Listener::open(loop, self.options_.socket, [&self](Fd client) { self.admit(std::move(client)); });
  if (!listener) return listener.error();
  self.listener_ = *std::move(listener);
  self.adopt_connections();
  return server;
}

void IvshmemServer::adopt_connections() {
  for (const std::string& name : options_.store.left("peer/")) {
    const auto peer = static_cast<std::uint32_t>(std::strtoul(name.c_str() + std::strlen("peer/"), nullptr, 10));
    Client& client = enter(peer, options_.store.take(name));
    next_peer_ = std::max(next_peer_, peer + 1);
    watch(client);
  }
}

IvshmemServer::~IvshmemServer() {
  while (!clients_.empty()) drop(clients_.begin()->first, nullptr);
}

// Reuses numbers as late as possible, because a slot may still name its last holder.
std::uint32_t IvshmemServer::free_peer() {
  while (clients_.count(next_peer_) != 0)
    next_peer_ = next_peer_ == last_peer ? ring::first_guest_peer : next_peer_ + 1;
  const std::uint32_t peer = next_peer_;
  next_peer_ = peer == last_peer ? ring::first_guest_peer : peer + 1;
  return peer;
}

void IvshmemServer::admit(Fd socket) {
  if (clients_.size() >= options_.connections) {
    if (const auto more = refusals_.admit()) {
      spdlog::warn("{}: a connection was refused: there are {} already{}", options_.socket.path, clients_.size(),
                   *more);
    }
    return;
  }
  const std::uint32_t peer = free_peer();
  Client& client = enter(peer, std::move(socket));
  const auto own = static_cast<std::int64_t>(peer);
  client.messages = {{protocol_version, -1}, {own, -1}, {region_follows, options_.memfd}};
  client.messages.insert(client.messages.end(), options_.host_peers.begin(), options_.host_peers.end());
  for (const int fd : options_.guest_interrupts) client.messages.push_back({own, fd});
  client.timer = loop_.after(setup_patience, [this, peer] { drop(peer, "it does not read"); });
  send_some(client);
}

// From now on the end of the client's process is noticed.
IvshmemServer::Client& IvshmemServer::enter(std::uint32_t peer, Fd socket) {
  auto& place = clients_[peer];
  place = std::make_unique<Client>();
  Client& client = *place;
  client.peer = peer;
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0) client.pid = credentials.pid;
  client.socket = std::move(socket);
  spdlog::debug("{}: process {} is peer {}", options_.socket.path, client.pid, peer);
  // The process may be in another PID namespace (ID 0) or gone; then only the connection shows its end.
  client.process = client.pid > 0 ? open_process(client.pid) : Fd();
  if (client.process) {
    client.process_watch =
        loop_.watch(client.process.get(), POLLIN, [this, peer](short) { drop(peer, "its process has ended"); });
  }
  return client;
}

// A client never sends: data and the end of the connection both drop it.
void IvshmemServer::watch(Client& client) {
  client.socket_watch = loop_.watch(client.socket.get(), POLLIN | POLLRDHUP,
                                    [this, peer = client.peer](short) { drop(peer, "its connection was closed"); });
}

void IvshmemServer::send_some(Client& client) {
  const std::uint32_t peer = client.peer;
  Sent result = Sent::Yes;
  while (result == Sent::Yes && client.sent < client.messages.size()) {
    result = send_message(client.socket.get(), client.messages[client.sent]);
    if (result == Sent::Yes) ++client.sent;
  }
  if (result == Sent::Failed) return drop(peer, "it cannot be written to");
  const bool done = client.sent == client.messages.size();
  loop_.forget(client.socket_watch);
  if (done) {
    loop_.forget(client.timer);
    options_.store.keep(fmt::format("peer/{}", peer), client.socket.get());
    watch(client);
  } else {
    client.socket_watch =
        loop_.watch(client.socket.get(), POLLOUT, [this, peer](short) { send_some(*clients_.at(peer)); });
  }
}

void IvshmemServer::drop(std::uint32_t peer, const char* why) {
  const auto found = clients_.find(peer);
  if (found == clients_.end()) return;
  Client& client = *found->second;
  for (EventLoop::Id* id : {&client.socket_watch, &client.process_watch, &client.timer}) loop_.forget(*id);
  shutdown(client.socket.get(), SHUT_RDWR);
  options_.store.forget(fmt::format("peer/{}", peer));
  if (why != nullptr)
    spdlog::debug("{}: peer {} (process {}) is gone: {}", options_.socket.path, peer, client.pid, why);
  clients_.erase(found);
  if (why != nullptr) gone_(peer);
}

}  // namespace host::broker
