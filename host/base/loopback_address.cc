#include "host/base/loopback_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>

namespace host::broker {
namespace {

constexpr std::string_view hosts[] = {"127.0.0.1:", "[::1]:"};

std::optional<std::uint16_t> to_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (failed != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

template <class Address>
bool bind_as(int socket, const Address& address) {
  return bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

bool bind_v4(int socket, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return bind_as(socket, address);
}

bool bind_v6(int socket, std::uint16_t port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  address.sin6_addr = in6addr_loopback;
  return bind_as(socket, address);
}

}  // namespace

std::optional<LoopbackAddress> parse_loopback(std::string_view text) {
  for (const std::string_view host : hosts) {
    if (!text.starts_with(host)) continue;
    const auto port = to_port(text.substr(host.size()));
    return port ? std::optional(LoopbackAddress{host == hosts[1], *port}) : std::nullopt;
  }
  return std::nullopt;
}

std::string in_words(const LoopbackAddress& address) {
  return fmt::format("{}{}", hosts[address.v6 ? 1 : 0], address.port);
}

Fd bind_to(const LoopbackAddress& address) {
  Fd socket(::socket(address.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return socket;
  // Connections of an earlier broker may linger in TIME_WAIT; they must not prevent this bind.
  const int yes = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool bound = address.v6 ? bind_v6(socket.get(), address.port) : bind_v4(socket.get(), address.port);
  if (bound) return socket;
  const int why = errno;
  socket.reset();
  errno = why;
  return socket;
}

}  // namespace host::broker
