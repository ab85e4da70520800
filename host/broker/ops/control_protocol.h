// The socket for `ivgpu end` and `ivgpu reload`. Its mode is 0600, so only the broker's user can use it. A client sends
// one line:
//   "end VM" or "end VM/SESSION"  the answer is "ok COUNT" or "error SENTENCE"
//   "reload"                      the answer is a line "info TEXT" or "error TEXT" for each thing that changes or
//                                 fails, while it does, and "done"
//
// Trust: a line is read as hostile all the same (host/broker/ops/answer_server.h bounds it).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "host/broker/ops/answer_server.h"

namespace host::broker {

inline constexpr std::string_view reload_request = "reload";

struct EndRequest {
  std::string vm;                     // fit to be a VM's name
  std::optional<std::uint32_t> slot;  // nothing: all
};

// Of a line without its end; nothing where it is no request.
std::optional<EndRequest> parse_end(std::string_view line);

// A line that is longer than any request has no answer.
Protocol control_protocol();

// The path of this socket: no VM's socket has this name.
std::string control_path(const std::string& runtime_dir);

}  // namespace host::broker
