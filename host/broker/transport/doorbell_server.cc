#include "host/broker/transport/doorbell_server.h"

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
#include "ring/layout/doorbell_channel.h"

namespace host::broker {
namespace {

constexpr const char *port = "port/", *program = "program/";
std::string name_of(std::uint64_t client, bool process) { return (process ? program : port) + std::to_string(client); }
// 0: none.
std::uint64_t number_in(const std::string& name, const char* beginning) {
  return std::strtoull(name.c_str() + std::strlen(beginning), nullptr, 10);
}

}  // namespace

DoorbellServer::DoorbellServer(EventLoop& loop, Options options, Events events)
    : loop_(loop),
      options_(std::move(options)),
      events_(std::move(events)),
      interrupts_(loop, options_.store, {[this](ClientId client) { wake(client); }, events_.named}) {
  if (!options_.vsock) return;
  vsock_ = std::make_unique<VsockPort>(loop_, options_.vm, std::move(*options_.vsock),
                                       [this](Fd client) { admit_program(std::move(client)); });
}

Result<std::unique_ptr<DoorbellServer>> DoorbellServer::listen(EventLoop& loop, Options options, Events events) {
  std::unique_ptr<DoorbellServer> server(new DoorbellServer(loop, std::move(options), std::move(events)));
  if (!server->interrupts_.make(server->options_.slots))
    return Error{fmt::format("VM {}: an interrupt: {}", server->options_.vm, std::strerror(errno))};
  if (const auto opened = server->open_sockets(); !opened) return opened.error();
  server->adopt_channels();
  return server;
}

Result<void> DoorbellServer::open_sockets() {
  auto listener = Listener::open(loop_, options_.socket, [this](Fd client) { admit_port(std::move(client)); });
  if (!listener) return listener.error();
  listener_ = *std::move(listener);
  if (vsock_ != nullptr) return vsock_->open();
  return {};
}

void DoorbellServer::stop_admitting() {
  listener_.reset();
  if (vsock_ != nullptr) vsock_->close();
}

DoorbellServer::~DoorbellServer() {
  loop_.forget(lost_timer_);
  while (!clients_.empty()) drop(clients_.begin()->first);
}

// New channels get numbers above those that slots name, so that none is mistaken for an old one.
void DoorbellServer::adopt_channels() {
  interrupts_.adopt(options_.channels);
  for (std::uint32_t k = 0; k < interrupts_.slots(); ++k) next_ = std::max(next_, interrupts_.client(k) + 1);
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

void DoorbellServer::adopt_port(const std::string& name, ClientId id) {
  next_ = std::max(next_, id + 1);
  enter(id, options_.store.take(name), false, true);
}

// False if it is not a connection of this VM that has a slot; the connection is then ended.
bool DoorbellServer::adopt_program(const std::string& name, ClientId id) {
  next_ = std::max(next_, id + 1);
  Fd socket = options_.store.take(name);
  const auto cid = vsock_ != nullptr ? vsock_->cid_of(socket) : std::nullopt;
  if (interrupts_.has_slot(id) && cid && cid == vsock_->cid() && !clients_.contains(id)) {
    enter(id, std::move(socket), true, true);
    clients_[id].silence = loop_.after(vsock_->patience(), [this, id] { on_silence(id); });
    return true;
  }
  if (cid && cid != vsock_->cid())
    spdlog::warn(
        "{}: a doorbell channel of before the restart is refused: it comes from CID {}, and the VM's vsock_cid is {}",
        options_.vm, *cid, vsock_->cid());
  shutdown(socket.get(), SHUT_RDWR);
  options_.store.forget(name);
  return false;
}

bool DoorbellServer::has_room() {
  if (clients_.size() < options_.connections) return true;
  if (const auto more = full_.admit())
    spdlog::warn("{}: a doorbell channel is refused: there are {} already{}", options_.vm, clients_.size(), *more);
  return false;
}

void DoorbellServer::admit_port(Fd socket) {
  if (!has_room()) return;
  const ClientId id = next_++;
  options_.store.keep(name_of(id, false), socket.get());
  enter(id, std::move(socket), false, true);
}

void DoorbellServer::enter(ClientId id, Fd socket, bool process, bool is_kept) {
  Client& client = clients_[id];
  client.socket = std::move(socket);
  client.watch = std::make_unique<PacedWatch>(loop_, client.socket.get(), [this, id] { on_bytes(id); });
  client.process = process;
  client.is_kept = is_kept;
  spdlog::debug("{}: doorbell channel {} of {}{}", options_.vm, clients_.size(), options_.connections,
                process ? ", by vsock" : "");
}

void DoorbellServer::admit_program(Fd socket) {
  if (!has_room()) return;
  const ClientId id = next_++;
  enter(id, std::move(socket), true, false);
  wake(id);  // confirms the connection
  clients_[id].silence = loop_.after(vsock_->patience(), [this, id] { on_silence(id); });
}

void DoorbellServer::on_silence(ClientId id) {
  Client& client = clients_[id];
  client.silence = 0;
  if (interrupts_.has_slot(id)) {
    keep_program(id);
    client.silence = loop_.after(vsock_->patience(), [this, id] { on_silence(id); });
  } else {
    spdlog::debug("{}: a doorbell channel that has no slot makes room", options_.vm);
    on_end(id);
  }
}

void DoorbellServer::on_bytes(ClientId id) {
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
void DoorbellServer::on_end(ClientId id) {
  if (clients_[id].process) end_sessions_of(id);
  drop(id);
  spdlog::debug("{}: a doorbell channel has ended", options_.vm);
}

void DoorbellServer::end_sessions_of(ClientId id) {
  for (std::uint32_t k = 0; k < interrupts_.slots(); ++k)
    if (id != 0 && interrupts_.client(k) == id) {
      events_.ended(k);
      interrupts_.give(k, 0);
    }
}

// shutdown(), because the service manager may have a copy.
void DoorbellServer::drop(ClientId id) {
  interrupts_.take_all_from(id);
  Client& client = clients_[id];
  loop_.forget(client.silence);
  shutdown(client.socket.get(), SHUT_RDWR);
  if (client.is_kept) options_.store.forget(name_of(id, client.process));
  clients_.erase(id);
}

// Keeps a program's connection once it has named a slot. Others end with the broker.
void DoorbellServer::keep_program(ClientId id) {
  Client& client = clients_[id];
  if (!client.process || client.is_kept || !vsock_->may_keep()) return;
  options_.store.keep(name_of(id, true), client.socket.get());
  client.is_kept = true;
}

void DoorbellServer::take(ClientId id, unsigned char byte, Heard& heard) {
  if (byte == ring::doorbell_look) {
    heard.look = true;
  } else if (byte < interrupts_.slots()) {
    interrupts_.give(byte, id);
    keep_program(id);
    heard.slot = true;
  } else if (const auto more = nonsense_.admit()) {
    spdlog::warn("{}: a doorbell channel says {:#04x}, which means nothing{}", options_.vm, byte, *more);
  }
}

// A full socket already holds an unread byte.
void DoorbellServer::wake(ClientId id) const {
  const auto client = clients_.find(id);
  if (client == clients_.end()) return;
  [[maybe_unused]] const auto n = send_now(client->second.socket.get(), &ring::doorbell_woken, 1);
}

}  // namespace host::broker
