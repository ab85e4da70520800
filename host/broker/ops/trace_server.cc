#include "host/broker/ops/trace_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host/base/fd_message.h"

namespace host::broker {
namespace {

using ring::TraceMessage, ring::TraceNews, ring::TraceRequest;

constexpr auto patience = std::chrono::seconds(5);  // for the request
constexpr std::size_t most_clients = 16;

std::string name_in(const TraceRequest& request) { return {request.vm, strnlen(request.vm, sizeof request.vm)}; }

TraceMessage message_of(TraceNews news, const std::string& text) {
  TraceMessage message{};
  message.magic = ring::trace_magic;
  message.version = ring::telemetry_version;
  message.news = news;
  text.copy(message.text, sizeof message.text - 1);
  return message;
}

}  // namespace

std::string trace_path(const std::string& runtime_dir) { return runtime_dir + "/" + ring::trace_socket_name; }

TraceServer::~TraceServer() {
  while (!clients_.empty()) drop(clients_.begin());
}

Result<void> TraceServer::listen(const ListenerOptions& socket) {
  auto listener = Listener::open(loop_, socket, [this](Fd client) { admit(std::move(client)); });
  if (!listener) return listener.error();
  listener_ = *std::move(listener);
  return {};
}

// ---- clients -------------------------------------------------------------------------------------------------------

void TraceServer::admit(Fd socket) {
  if (clients_.size() >= most_clients) return;
  const auto client = clients_.emplace(clients_.end());
  client->socket = std::move(socket);
  client->timer = loop_.after(patience, [this, client] { drop(client); });
  client->watch = loop_.watch(client->socket.get(), POLLIN, [this, client](short) { read_request(client); });
}

void TraceServer::read_request(Clients::iterator client) {
  const ssize_t n =
      receive_now(client->socket.get(), client->bytes.data() + client->read, client->bytes.size() - client->read);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return void(drop(client));
  client->read += static_cast<std::size_t>(n);
  std::uint32_t head[2] = {};
  if (client->read < sizeof head) return;
  std::memcpy(head, client->bytes.data(), sizeof head);
  if (head[0] != ring::trace_magic) return void(drop(client));
  if (head[1] == ring::telemetry_version) {
    if (client->read == client->bytes.size()) understand(client);
    return;
  }
  const std::string why = fmt::format("its traces have version {}", ring::telemetry_version);
  send_message(*client, message_of(TraceNews::Refused, why), -1);
  drop(client);
}

// Precondition: a complete request is in the buffer.
void TraceServer::understand(Clients::iterator client) {
  TraceRequest next;
  std::memcpy(&next, client->bytes.data(), sizeof next);
  client->read = 0;
  if (client->listens) {
    if (!narrows(next, client->request)) return void(drop(client));
    client->request = next;
    return set_switches();
  }
  client->request = next;
  const std::string why = refusal(next);
  if (why.empty()) return begin_reporting(client);
  send_message(*client, message_of(TraceNews::Refused, why), -1);
  drop(client);
}

bool TraceServer::narrows(const TraceRequest& next, const TraceRequest& first) {
  return next.slot == first.slot && name_in(next) == name_in(first) && first.process == 0 && next.process != 0;
}

// Empty if the request is valid.
std::string TraceServer::refusal(const TraceRequest& request) const {
  const std::string name = name_in(request);
  const auto has_slot = [&](const auto& vm) { return request.slot == ring::any_slot || request.slot < vm.second; };
  if (name.empty()) {
    return std::any_of(vms_.begin(), vms_.end(), has_slot) ? "" : fmt::format("no VM has a slot {}", request.slot);
  }
  const auto vm = vms_.find(name);
  if (vm == vms_.end()) return "it has no VM of that name";
  return has_slot(*vm) ? "" : fmt::format("that VM has {} slots, counted from 0", vm->second);
}

void TraceServer::begin_reporting(Clients::iterator client) {
  loop_.forget(client->timer);
  client->listens = true;
  set_switches();
  for (const auto& [session, traced] : sessions_) {
    if (!wants(*client, traced)) continue;
    if (!report(*client, TraceNews::Begins, session, traced)) return void(drop(client));
    if (traced.process != 0 && !report(*client, TraceNews::Claimed, session, traced)) return void(drop(client));
  }
  if (!report(*client, TraceNews::Listed, 0, {})) drop(client);
}

TraceServer::Clients::iterator TraceServer::drop(Clients::iterator client) {
  loop_.forget(client->watch);
  loop_.forget(client->timer);
  const auto next = clients_.erase(client);
  set_switches();
  return next;
}

bool TraceServer::wants(const Client& client, const Traced& traced) {
  if (!client.listens) return false;
  const TraceRequest& r = client.request;
  const std::string name = name_in(r);
  return (name.empty() || name == traced.vm) && (r.slot == ring::any_slot || r.slot == traced.slot) &&
         (r.process == 0 || traced.process == 0 || r.process == traced.process);
}

// False if the client must be dropped: it does not read, or the session's memory cannot be passed.
bool TraceServer::report(const Client& client, TraceNews news, Session session, const Traced& traced) {
  TraceMessage message = message_of(news, traced.vm);
  message.slot = traced.slot, message.session = session;
  message.worker = traced.worker, message.process = traced.process, message.peer = traced.peer;
  if (news != TraceNews::Begins) return send_message(client, message, -1);
  const Fd memory = traced.telemetry->read_only();
  if (!memory) {
    const int why = errno;
    if (const auto more = failures_.admit()) spdlog::warn("a trace cannot be shown: {}{}", std::strerror(why), *more);
  }
  return memory && send_message(client, message, memory.get());
}

bool TraceServer::send_message(const Client& client, const TraceMessage& message, int descriptor) {
  return send_with_fd(client.socket.get(), &message, sizeof message, descriptor) == sizeof message;
}

// ---- sessions ------------------------------------------------------------------------------------------------------

TraceServer::Session TraceServer::begin(const std::string& vm, std::uint32_t slot, pid_t worker,
                                        const Telemetry& telemetry) {
  const Session session = next_++;
  const Traced& traced = sessions_[session] = {vm, slot, static_cast<std::uint32_t>(worker), 0, 0, &telemetry};
  set_switches();
  notify_all(TraceNews::Begins, session, traced);
  return session;
}

void TraceServer::claimed(Session session, std::uint32_t process, std::uint32_t peer) {
  const auto at = sessions_.find(session);
  if (at == sessions_.end() || at->second.process != 0 || process == 0) return;
  const Traced before = at->second;
  at->second.process = process, at->second.peer = peer;
  // Clients that wait for another process are notified, too, since the session is no longer of interest to them.
  for (auto client = clients_.begin(); client != clients_.end();) {
    const bool dropped = wants(*client, before) && !report(*client, TraceNews::Claimed, session, at->second);
    client = dropped ? drop(client) : std::next(client);
  }
  set_switches();
}

void TraceServer::end(Session session) {
  const auto at = sessions_.find(session);
  if (at == sessions_.end()) return;
  const Traced gone = at->second;
  sessions_.erase(at);
  notify_all(TraceNews::Ended, session, gone);
}

void TraceServer::notify_all(TraceNews news, Session session, const Traced& traced) {
  for (auto client = clients_.begin(); client != clients_.end();) {
    const bool dropped = wants(*client, traced) && !report(*client, news, session, traced);
    client = dropped ? drop(client) : std::next(client);
  }
}

void TraceServer::set_switches() const {
  for (const auto& [session, traced] : sessions_) {
    const auto watches = [&traced = traced](const Client& client) { return wants(client, traced); };
    traced.telemetry->trace(std::any_of(clients_.begin(), clients_.end(), watches));
  }
}

}  // namespace host::broker
