// The socket of `ivgpu end` and `ivgpu reload`. Its mode is 0600: only the broker's user may connect. A client sends
// one line:
//   "end VM" or "end VM/SESSION"  the answer is "ok COUNT" or "error SENTENCE"
//   "reload"                      the answer is a line "info TEXT" or "error TEXT" for each change or failure, as
//                                 it happens, and "done"
//
// Trust: the line is still parsed as hostile (host/broker/ops/answer_server.h bounds it).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "host/broker/ops/answer_server.h"

namespace host::broker {

inline constexpr std::string_view reload_request = "reload";

struct EndRequest {
  std::string vm;                     // a valid VM name
  std::optional<std::uint32_t> slot;  // nothing: all sessions
};

// Parses a line without its end; nothing if it is no request.
[[nodiscard]] std::optional<EndRequest> parse_end(std::string_view line);

// Too long a line gets no answer.
Protocol control_protocol();

// The path of this socket, which no VM's socket can have.
std::string control_path(const std::string& runtime_dir);

}  // namespace host::broker
