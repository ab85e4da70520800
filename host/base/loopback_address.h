// A loopback address as the configuration writes it: "127.0.0.1:9910" or "[::1]:9910". Other addresses are refused,
// because the servers that use this check no permissions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "host/base/fd.h"

namespace host::broker {

struct LoopbackAddress {
  bool v6 = false;
  std::uint16_t port = 0;
};

// Returns nothing unless the text is a loopback address with a port from 1 to 65535.
[[nodiscard]] std::optional<LoopbackAddress> parse_loopback(std::string_view text);

std::string in_words(const LoopbackAddress& address);

// Returns a bound socket, close-on-exec and non-blocking. On failure it is empty, and errno has the reason.
[[nodiscard]] Fd bind_to(const LoopbackAddress& address);

}  // namespace host::broker
