#include "host/broker/bell_server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "host/broker/transport.h"
#include "ring/bells.h"

namespace host::broker {
namespace {

constexpr const char* port = "port/";
std::string name_of_port(std::uint64_t client) { return port + std::to_string(client); }

}  // namespace

std::unique_ptr<BellServer> BellServer::listen(EventLoop& loop, Options options, Events events, std::string& error) {
  std::unique_ptr<BellServer> server(new BellServer(loop, std::move(options), std::move(events)));
  if (!server->make_interrupts()) {
    error = fmt::format("VM {}: an interrupt: {}", server->options_.vm, std::strerror(errno));
    return nullptr;
  }
  if (!server->open_doors(error)) return nullptr;
  server->adopt_channels();
  return server;
}

bool BellServer::open_doors(std::string& error) {
  listener_ = Listener::open(
      loop_, options_.socket, [this](Fd client) { admit_port(std::move(client)); }, error);
  if (!listener_ || !options_.vsock) return listener_ != nullptr;
  const TokenBucket pace(options_.vsock->per_second, options_.vsock->burst, Clock::now());
  vsock_ = Listener::open(
      loop_, std::move(options_.vsock->socket), "vsock of " + options_.vm, pace,
      [this](Fd client) { admit_program(std::move(client)); }, error);
  return vsock_ != nullptr;
}

BellServer::~BellServer() {
  while (!clients_.empty()) drop(clients_.begin()->first);
}

// New numbers come behind those that slots name: none is taken for one that has gone, as programs' own connections have.
void BellServer::adopt_channels() {
  for (std::uint32_t k = 0; k < options_.channels.size() && k < slots_.size(); ++k) {
    slots_[k].client = options_.channels[k];
    next_ = std::max(next_, slots_[k].client + 1);
  }
  for (const std::string& name : options_.store.left(port)) {
    const ClientId id = std::strtoull(name.c_str() + std::strlen(port), nullptr, 10);
    next_ = std::max(next_, id + 1);
    enter(id, options_.store.take(name), false);
  }
}

bool BellServer::make_interrupts() {
  slots_.resize(options_.slots);
  for (std::uint32_t k = 0; k < options_.slots; ++k) {
    Slot& slot = slots_[k];
    slot.interrupt = make_interrupt(k);
    if (!slot.interrupt) return false;
    slot.watch = std::make_unique<PacedWatch>(loop_, slot.interrupt.get(), [this, k] { on_interrupt(k); });
  }
  return true;
}

// The one that an earlier broker has left, which its worker has, or a new one.
Fd BellServer::make_interrupt(std::uint32_t slot) const {
  const std::string name = name_of_interrupt(slot);
  if (Fd left = options_.store.take(name); left) return left;
  Fd made(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (made) options_.store.keep(name, made.get());
  return made;
}

bool BellServer::has_room() {
  if (clients_.size() < options_.connections) return true;
  if (const auto more = full_.admit())
    spdlog::warn("{}: a bell channel is refused: there are {} already{}", options_.vm, clients_.size(), *more);
  return false;
}

void BellServer::admit_port(Fd socket) {
  if (!has_room()) return;
  const ClientId id = next_++;
  options_.store.keep(name_of_port(id), socket.get());
  enter(id, std::move(socket), false);
}

void BellServer::enter(ClientId id, Fd socket, bool process) {
  Client& client = clients_[id];
  client.socket = std::move(socket);
  client.watch = std::make_unique<PacedWatch>(loop_, client.socket.get(), [this, id] { on_bytes(id); });
  client.process = process;
  spdlog::debug("{}: bell channel {} of {}{}", options_.vm, clients_.size(), options_.connections,
                process ? ", by vsock" : "");
}

// The socket of a program that connects by itself: of this VM, or else of another, or of this machine.
void BellServer::admit_program(Fd socket) {
  const auto cid = options_.vsock->cid_of(socket.get());
  if (cid == options_.vsock->cid) return admit_own(std::move(socket));
  if (const auto more = strangers_.admit(); cid && more)
    spdlog::warn("{}: a connection by vsock is refused: it comes from CID {}, and the VM's vsock_cid is {}{}",
                 options_.vm, *cid, options_.vsock->cid, *more);
}

void BellServer::admit_own(Fd socket) {
  if (!has_room()) return;
  const ClientId id = next_++;
  enter(id, std::move(socket), true);
  wake(id);  // it is taken
  clients_[id].silence = loop_.after(options_.vsock->patience, [this, id] { on_silence(id); });
}

void BellServer::on_silence(ClientId id) {
  Client& client = clients_[id];
  client.silence = 0;
  if (std::any_of(slots_.begin(), slots_.end(), [id](const Slot& slot) { return slot.client == id; })) {
    client.silence = loop_.after(options_.vsock->patience, [this, id] { on_silence(id); });
  } else {
    spdlog::debug("{}: a bell channel that has no slot makes room", options_.vm);
    on_end(id);
  }
}

void BellServer::on_bytes(ClientId id) {
  unsigned char bytes[256];
  const ssize_t n = recv(clients_[id].socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return on_end(id);
  Heard heard;
  for (ssize_t k = 0; k < n; ++k) take(id, bytes[k], heard);
  if (heard.slot) wake(id);  // the worker may have rung before it was named
  if (heard.look) events_.look();
}

void BellServer::on_end(ClientId id) {
  std::vector<std::uint32_t> freed;
  for (std::uint32_t k = 0; k < slots_.size() && clients_[id].process; ++k)
    if (slots_[k].client == id) freed.push_back(k);
  drop(id);
  spdlog::debug("{}: a bell channel has ended", options_.vm);
  for (const std::uint32_t slot : freed) events_.ended(slot);
}

// Not only closed: the service manager may have a copy of a port's.
void BellServer::drop(ClientId id) {
  for (Slot& slot : slots_)
    if (slot.client == id) slot.client = 0;
  Client& client = clients_[id];
  loop_.forget(client.silence);
  shutdown(client.socket.get(), SHUT_RDWR);
  if (!client.process) options_.store.forget(name_of_port(id));
  clients_.erase(id);
}

void BellServer::take(ClientId id, unsigned char byte, Heard& heard) {
  if (byte == ring::bell_look) {
    heard.look = true;
  } else if (byte < slots_.size()) {
    slots_[byte].client = id;
    events_.named(byte, id);
    heard.slot = true;
  } else if (const auto more = nonsense_.admit()) {
    spdlog::warn("{}: a bell channel says {:#04x}, which means nothing{}", options_.vm, byte, *more);
  }
}

// Read whether or not there is somebody to hear it: a worker does not ring where it has not been heard yet.
void BellServer::on_interrupt(std::uint32_t slot) {
  drain(slots_[slot].interrupt.get());
  wake(slots_[slot].client);
}

// A channel that takes no byte has one that was not read yet.
void BellServer::wake(ClientId id) const {
  const auto client = clients_.find(id);
  if (client == clients_.end()) return;
  [[maybe_unused]] const auto n = send(client->second.socket.get(), &ring::bell_woken, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace host::broker
