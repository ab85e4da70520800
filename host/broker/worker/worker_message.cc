#include "host/broker/worker/worker_message.h"

#include <sys/socket.h>

#include <cstring>

namespace host::broker {

std::optional<worker::ReadyMessage> parse_ready(const void* bytes, std::size_t length, int flags) {
  worker::ReadyMessage message;
  if (length != sizeof message || (flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return std::nullopt;
  std::memcpy(&message, bytes, sizeof message);
  if (message.kind != worker::ready_kind || message.text[sizeof message.text - 1] != '\0') return std::nullopt;
  return message;
}

std::optional<worker::MemoryMessage> parse_memory(const void* bytes, std::size_t length, int flags) {
  worker::MemoryMessage message;
  if (length != sizeof message || (flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return std::nullopt;
  std::memcpy(&message, bytes, sizeof message);
  return message.kind == worker::memory_kind ? std::optional(message) : std::nullopt;
}

}  // namespace host::broker
