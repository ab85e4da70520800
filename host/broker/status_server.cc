#include "host/broker/status_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace host::broker {
namespace {

// A document that does not fit the socket's buffer waits for its reader, not for ever, and for few at a time.
constexpr auto patience = std::chrono::seconds(5);
constexpr std::size_t most_clients = 16;

}  // namespace

struct StatusServer::Client {
  Fd socket;
  std::string text;
  std::size_t sent = 0;
  EventLoop::Id watch = 0, timer = 0;
};

StatusServer::StatusServer(EventLoop& loop, std::function<std::string()> document)
    : loop_(loop), document_(std::move(document)) {}

std::unique_ptr<StatusServer> StatusServer::listen(EventLoop& loop, const ListenerOptions& socket,
                                                   std::function<std::string()> document, std::string& error) {
  std::unique_ptr<StatusServer> server(new StatusServer(loop, std::move(document)));
  StatusServer& self = *server;
  self.listener_ = Listener::open(
      loop, socket, [&self](Fd client) { self.admit(std::move(client)); }, error);
  return self.listener_ ? std::move(server) : nullptr;
}

StatusServer::~StatusServer() {
  while (!clients_.empty()) drop(clients_.begin());
}

void StatusServer::admit(Fd socket) {
  if (clients_.size() >= most_clients) return;
  const auto client = clients_.emplace(clients_.end());
  client->socket = std::move(socket);
  client->text = document_();
  client->timer = loop_.after(patience, [this, client] { drop(client); });
  send_some(client);
}

void StatusServer::send_some(Clients::iterator client) {
  while (client->sent < client->text.size()) {
    const ssize_t n = send(client->socket.get(), client->text.data() + client->sent, client->text.size() - client->sent,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      if (client->watch == 0) {
        client->watch = loop_.watch(client->socket.get(), POLLOUT, [this, client](short) { send_some(client); });
      }
      return;
    }
    if (n <= 0) break;
    client->sent += static_cast<std::size_t>(n);
  }
  drop(client);
}

void StatusServer::drop(Clients::iterator client) {
  loop_.forget(client->watch);
  loop_.forget(client->timer);
  clients_.erase(client);
}

}  // namespace host::broker
