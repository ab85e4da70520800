#include "host/broker/ops/answer_server.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "host/base/fd_message.h"

namespace host::broker {
namespace {

// Time to send the request, and to read the complete answer.
constexpr auto patience = std::chrono::seconds(5);
constexpr std::size_t most_clients = 16;

}  // namespace

Result<std::unique_ptr<AnswerServer>> AnswerServer::listen(EventLoop& loop, const Address& address, Protocol protocol,
                                                           Asked asked) {
  std::unique_ptr<AnswerServer> server(new AnswerServer(loop, std::move(protocol), std::move(asked)));
  const auto admit = [self = server.get()](Fd client) { self->admit(std::move(client)); };
  auto listener = std::visit([&](const auto& at) { return Listener::open(loop, at, admit); }, address);
  if (!listener) return listener.error();
  server->listener_ = *std::move(listener);
  return server;
}

AnswerServer::~AnswerServer() {
  while (!clients_.empty()) drop(clients_.begin()->first);
}

void AnswerServer::admit(Fd socket) {
  if (clients_.size() >= most_clients) return;
  const std::uint64_t number = next_++;
  Client& client = clients_[number];
  client.socket = std::move(socket);
  if (protocol_.longest == 0) return asked_({}, Answer(*this, number));
  limit_time(number);
  client.watch = loop_.watch(client.socket.get(), POLLIN, [this, number](short) { read_some(number); });
}

void AnswerServer::read_some(std::uint64_t number) {
  Client& client = clients_.at(number);
  char bytes[4096];
  const std::size_t room = std::min(sizeof bytes, protocol_.longest - client.request.size());
  const ssize_t n = receive_now(client.socket.get(), bytes, room);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return drop(number);
  client.request.append(bytes, static_cast<std::size_t>(n));
  const std::size_t length = protocol_.length_of(client.request);
  if (length != std::string_view::npos || client.request.size() == protocol_.longest) on_request(number, length);
}

void AnswerServer::on_request(std::uint64_t number, std::size_t length) {
  Client& client = clients_.at(number);
  loop_.forget(client.watch);
  loop_.forget(client.timer);
  if (length == std::string_view::npos) {
    reply(number, protocol_.too_long);
    return end(number);
  }
  const std::string request = client.request.substr(0, length);  // copied: the client may go during the call
  asked_(request, Answer(*this, number));
}

void AnswerServer::reply(std::uint64_t number, const std::string& text) {
  const auto client = clients_.find(number);
  if (client == clients_.end()) return;
  client->second.text += text;
  send_some(number);
}

void AnswerServer::end(std::uint64_t number) {
  const auto client = clients_.find(number);
  if (client == clients_.end()) return;
  client->second.ends = true;
  limit_time(number);
  send_some(number);
}

void AnswerServer::send_some(std::uint64_t number) {
  Client& client = clients_.at(number);
  while (client.sent < client.text.size()) {
    const ssize_t n = send_now(client.socket.get(), client.text.data() + client.sent, client.text.size() - client.sent);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      if (client.watch == 0)
        client.watch = loop_.watch(client.socket.get(), POLLOUT, [this, number](short) { send_some(number); });
      return;
    }
    if (n <= 0) return drop(number);
    client.sent += static_cast<std::size_t>(n);
  }
  loop_.forget(client.watch);
  client.text.clear();
  client.sent = 0;
  if (client.ends) drop(number);
}

void AnswerServer::limit_time(std::uint64_t number) {
  Client& client = clients_.at(number);
  loop_.forget(client.timer);
  client.timer = loop_.after(patience, [this, number] { drop(number); });
}

void AnswerServer::drop(std::uint64_t number) {
  Client& client = clients_.at(number);
  loop_.forget(client.watch);
  loop_.forget(client.timer);
  clients_.erase(number);
}

}  // namespace host::broker
