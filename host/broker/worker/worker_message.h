// Parses messages of a worker, a process that a guest may control.
#pragma once

#include <cstddef>
#include <optional>

#include "host/base/process/control.h"

namespace host::broker {

// Parses the first message, and later ones; `flags` are recvmsg's. nullopt if the message is malformed.
std::optional<worker::ReadyMessage> parse_ready(const void* bytes, std::size_t length, int flags);
std::optional<worker::MemoryMessage> parse_memory(const void* bytes, std::size_t length, int flags);

}  // namespace host::broker
