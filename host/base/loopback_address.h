// An address on which this machine alone can connect to itself, as the configuration writes it: "127.0.0.1:9910" or
// "[::1]:9910". Others are no such address: what is served there has no permissions.
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

// Nothing where the text is no such address with a port from 1 to 65535.
std::optional<LoopbackAddress> parse_loopback(std::string_view text);

std::string in_words(const LoopbackAddress& address);

// A bound socket, close-on-exec and non-blocking; empty on failure, and errno says why.
Fd bind_to(const LoopbackAddress& address);

}  // namespace host::broker
