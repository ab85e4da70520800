#include "host/broker/transport/bell_server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "host/base/fd_message.h"
#include "host/broker/transport/transport.h"
#include "ring/layout/bells.h"

namespace host::broker {
namespace {

constexpr const char *port = "port/", *program = "program/";
std::string name_of(std::uint64_t client, bool process) { return (process ? program : port) + std::to_string(client); }
// 0: none.
std::uint64_t number_in(const std::string& name, const char* beginning) {
  return std::strtoull(name.c_str() + std::strlen(beginning), nullptr, 10);
}

TokenBucket pace_of_keeping(const std::optional<VsockDoor>& door) {
  return door ? TokenBucket(door->kept_per_second, door->kept_burst, Clock::now()) : TokenBucket(1, 0, Clock::now());
}

// A port becomes free with a delay: the kernel still closes a killed process's io_uring, or the service manager has yet
// to close its copy.
constexpr auto between_tries = std::chrono::milliseconds(10), let_go_within = std::chrono::milliseconds(200);
constexpr auto between_late_tries = std::chrono::milliseconds(500);

}  // namespace

std::string VsockDoor::in_words(const std::string& vm, const std::string& error) const {
  return fmt::format("VM {}: vsock_port = {}: {}", vm, port, error);
}

BellServer::BellServer(EventLoop& loop, Options options, Events events)
    : loop_(loop),
      options_(std::move(options)),
      events_(std::move(events)),
      keeping_(pace_of_keeping(options_.vsock)) {}

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
  if (options_.vsock->socket.socket) return open_vsock(error);
  await_port(Clock::now());
  return true;
}

bool BellServer::open_vsock(std::string& error) {
  const TokenBucket pace(options_.vsock->per_second, options_.vsock->burst, Clock::now());
  vsock_ = Listener::open(
      loop_, std::move(options_.vsock->socket), pace, [this](Fd client) { admit_program(std::move(client)); }, error);
  return vsock_ != nullptr;
}

// Retries while the loop goes on. Programs that find no listener use timed sleeps.
void BellServer::await_port(Clock::time_point since) {
  const bool is_late = Clock::now() - since >= let_go_within;
  port_timer_ = loop_.after(is_late ? between_late_tries : between_tries, [this, since, is_late] {
    port_timer_ = 0;
    try_port(since, is_late);
  });
}

void BellServer::try_port(Clock::time_point since, bool is_late) {
  VsockDoor& door = *options_.vsock;
  BoundVsock made = door.bind(door.port);
  if (!made.socket) {
    if (!is_late && Clock::now() - since >= let_go_within)
      spdlog::error("{}; the VM's programs nap until then", door.in_words(options_.vm, made.error));
    return await_port(since);
  }
  door.socket.socket = std::move(made.socket);
  std::string error;
  if (!open_vsock(error)) return spdlog::error("{}", error);
  if (is_late) spdlog::info("{}: port {} of vsock is free now", options_.vm, door.port);
}

void BellServer::shut_door() {
  loop_.forget(port_timer_);
  listener_.reset(), vsock_.reset();
}

BellServer::~BellServer() {
  loop_.forget(lost_timer_);
  loop_.forget(port_timer_);
  while (!clients_.empty()) drop(clients_.begin()->first);
}

// New channels get numbers above those that slots name, so that none is mistaken for an old one.
void BellServer::adopt_channels() {
  for (std::uint32_t k = 0; k < options_.channels.size() && k < slots_.size(); ++k) {
    slots_[k].client = options_.channels[k];
    next_ = std::max(next_, slots_[k].client + 1);
  }
  for (const std::string& name : options_.store.left(port)) adopt_port(name, number_in(name, port));
  std::vector<ClientId> lost;
  for (const std::string& name : options_.store.left(program))
    if (const ClientId id = number_in(name, program); !adopt_program(name, id)) lost.push_back(id);
  if (lost.empty()) return;
  lost_timer_ = loop_.after(Clock::duration::zero(), [this, lost] {  // deferred: the event's receiver is not ready yet
    lost_timer_ = 0;
    for (const ClientId id : lost) end_sessions_of(id);
  });
}

void BellServer::adopt_port(const std::string& name, ClientId id) {
  next_ = std::max(next_, id + 1);
  enter(id, options_.store.take(name), false, true);
}

// False if it is not a connection of this VM that has a slot; the connection is then ended.
bool BellServer::adopt_program(const std::string& name, ClientId id) {
  next_ = std::max(next_, id + 1);
  Fd socket = options_.store.take(name);
  const auto cid = options_.vsock ? options_.vsock->cid_of(socket.get()) : std::nullopt;
  if (has_slot(id) && cid && cid == options_.vsock->cid && !clients_.contains(id)) {
    enter(id, std::move(socket), true, true);
    clients_[id].silence = loop_.after(options_.vsock->patience, [this, id] { on_silence(id); });
    return true;
  }
  if (cid && cid != options_.vsock->cid)
    spdlog::warn(
        "{}: a bell channel of before the restart is refused: it comes from CID {}, and the VM's vsock_cid is {}",
        options_.vm, *cid, options_.vsock->cid);
  shutdown(socket.get(), SHUT_RDWR);
  options_.store.forget(name);
  return false;
}

bool BellServer::has_slot(ClientId id) const {
  return id != 0 && std::any_of(slots_.begin(), slots_.end(), [id](const Slot& slot) { return slot.client == id; });
}

void BellServer::give(std::uint32_t slot, ClientId id) {
  if (slots_[slot].client == id) return;
  slots_[slot].client = id;
  events_.named(slot, id);
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

// The eventfd of an earlier broker, which its worker has, or a new one.
SharedFd BellServer::make_interrupt(std::uint32_t slot) const {
  const std::string name = name_of_interrupt(slot);
  if (Fd left = options_.store.take(name); left) return SharedFd(std::move(left));
  SharedFd made = SharedFd::make_bell();
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
  options_.store.keep(name_of(id, false), socket.get());
  enter(id, std::move(socket), false, true);
}

void BellServer::enter(ClientId id, Fd socket, bool process, bool is_kept) {
  Client& client = clients_[id];
  client.socket = std::move(socket);
  client.watch = std::make_unique<PacedWatch>(loop_, client.socket.get(), [this, id] { on_bytes(id); });
  client.process = process;
  client.is_kept = is_kept;
  spdlog::debug("{}: bell channel {} of {}{}", options_.vm, clients_.size(), options_.connections,
                process ? ", by vsock" : "");
}

// A program connects: of this VM, of another VM, or of this machine.
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
  enter(id, std::move(socket), true, false);
  wake(id);  // confirms the connection
  clients_[id].silence = loop_.after(options_.vsock->patience, [this, id] { on_silence(id); });
}

void BellServer::on_silence(ClientId id) {
  Client& client = clients_[id];
  client.silence = 0;
  if (has_slot(id)) {
    keep_program(id);
    client.silence = loop_.after(options_.vsock->patience, [this, id] { on_silence(id); });
  } else {
    spdlog::debug("{}: a bell channel that has no slot makes room", options_.vm);
    on_end(id);
  }
}

void BellServer::on_bytes(ClientId id) {
  unsigned char bytes[256];
  const ssize_t n = receive_now(clients_[id].socket.get(), bytes, sizeof bytes);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return on_end(id);
  Heard heard;
  for (ssize_t k = 0; k < n; ++k) take(id, bytes[k], heard);
  if (heard.slot) wake(id);  // the worker may have interrupted before the slot was named
  if (heard.look) events_.look();
}

// Sessions first: if this broker is killed before they have ended, the next broker still sees the closed connection.
void BellServer::on_end(ClientId id) {
  if (clients_[id].process) end_sessions_of(id);
  drop(id);
  spdlog::debug("{}: a bell channel has ended", options_.vm);
}

void BellServer::end_sessions_of(ClientId id) {
  for (std::uint32_t k = 0; k < slots_.size(); ++k)
    if (id != 0 && slots_[k].client == id) {
      events_.ended(k);
      give(k, 0);
    }
}

// shutdown(), because the service manager may have a copy.
void BellServer::drop(ClientId id) {
  for (std::uint32_t k = 0; k < slots_.size(); ++k)
    if (slots_[k].client == id) give(k, 0);
  Client& client = clients_[id];
  loop_.forget(client.silence);
  shutdown(client.socket.get(), SHUT_RDWR);
  if (client.is_kept) options_.store.forget(name_of(id, client.process));
  clients_.erase(id);
}

// Keeps a program's connection once it has named a slot. Others end with the broker.
void BellServer::keep_program(ClientId id) {
  Client& client = clients_[id];
  if (!client.process || client.is_kept || keeping_.take(Clock::now()) > Span::zero()) return;
  options_.store.keep(name_of(id, true), client.socket.get());
  client.is_kept = true;
}

void BellServer::take(ClientId id, unsigned char byte, Heard& heard) {
  if (byte == ring::bell_look) {
    heard.look = true;
  } else if (byte < slots_.size()) {
    give(byte, id);
    keep_program(id);
    heard.slot = true;
  } else if (const auto more = nonsense_.admit()) {
    spdlog::warn("{}: a bell channel says {:#04x}, which means nothing{}", options_.vm, byte, *more);
  }
}

// Reads the interrupt even without a channel: a worker does not signal again before its last interrupt was read.
void BellServer::on_interrupt(std::uint32_t slot) {
  slots_[slot].interrupt.drain();
  wake(slots_[slot].client);
}

// A full socket already holds an unread byte.
void BellServer::wake(ClientId id) const {
  const auto client = clients_.find(id);
  if (client == clients_.end()) return;
  [[maybe_unused]] const auto n = send_now(client->second.socket.get(), &ring::bell_woken, 1);
}

}  // namespace host::broker
