#include "host/broker/control_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "host/broker/config.h"
#include "ring/layout.h"

namespace host::broker {
namespace {

constexpr auto patience = std::chrono::seconds(5);
constexpr std::size_t most_clients = 16;
constexpr std::string_view verb = "end ";

}  // namespace

std::optional<EndRequest> parse_end(std::string_view line) {
  if (!line.starts_with(verb)) return std::nullopt;
  line.remove_prefix(verb.size());
  const std::size_t name_end = std::min(line.find('/'), line.size());
  EndRequest request{std::string(line.substr(0, name_end)), std::nullopt};
  if (!is_vm_name(request.vm)) return std::nullopt;
  if (name_end == line.size()) return request;
  const std::string_view number = line.substr(name_end + 1);
  std::uint32_t slot = 0;
  const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), slot);
  if (failed != std::errc() || end != number.data() + number.size() || slot >= ring::max_slots) return std::nullopt;
  request.slot = slot;
  return request;
}

std::string control_path(const std::string& runtime_dir) { return runtime_dir + "/ivgpud.control"; }

struct ControlServer::Client {
  Fd socket;
  std::string line;
  EventLoop::Id watch = 0, timer = 0;
};

ControlServer::ControlServer(EventLoop& loop, Answer answer) : loop_(loop), answer_(std::move(answer)) {}

std::unique_ptr<ControlServer> ControlServer::listen(EventLoop& loop, const ListenerOptions& socket, Answer answer,
                                                     std::string& error) {
  std::unique_ptr<ControlServer> server(new ControlServer(loop, std::move(answer)));
  ControlServer& self = *server;
  self.listener_ = Listener::open(
      loop, socket, [&self](Fd client) { self.admit(std::move(client)); }, error);
  return self.listener_ ? std::move(server) : nullptr;
}

ControlServer::~ControlServer() {
  while (!clients_.empty()) drop(clients_.begin());
}

void ControlServer::admit(Fd socket) {
  if (clients_.size() >= most_clients) return;
  const auto client = clients_.emplace(clients_.end());
  client->socket = std::move(socket);
  client->timer = loop_.after(patience, [this, client] {
    client->timer = 0;
    drop(client);
  });
  client->watch = loop_.watch(client->socket.get(), POLLIN, [this, client](short) { read_some(client); });
}

void ControlServer::read_some(Clients::iterator client) {
  std::array<char, longest_line> bytes;
  const ssize_t n = recv(client->socket.get(), bytes.data(), bytes.size() - client->line.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return drop(client);
  client->line.append(bytes.data(), static_cast<std::size_t>(n));
  if (const std::size_t end = client->line.find('\n'); end != std::string::npos) {
    const std::string answer = answer_(std::string_view(client->line).substr(0, end)) + "\n";
    // A socket that nothing has been sent to has room for a line.
    [[maybe_unused]] const auto sent =
        send(client->socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return drop(client);
  }
  if (client->line.size() == longest_line) drop(client);
}

void ControlServer::drop(Clients::iterator client) {
  loop_.forget(client->watch);
  loop_.forget(client->timer);
  clients_.erase(client);
}

}  // namespace host::broker
