// What a worker says by its control socket, as the broker reads it: bytes of a process that a guest may control.
#pragma once

#include <cstddef>
#include <optional>

#include "host/base/process/control.h"

namespace host::broker {

// The first message of a worker, and every other; `flags` are recvmsg's. Anything else: nullopt.
std::optional<worker::ReadyMessage> parse_ready(const void* bytes, std::size_t length, int flags);
std::optional<worker::MemoryMessage> parse_memory(const void* bytes, std::size_t length, int flags);

}  // namespace host::broker
