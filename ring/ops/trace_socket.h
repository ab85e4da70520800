// The messages between `ivgpu trace` and the broker.
//
// A client sends one TraceRequest. The broker then reports the requested sessions, until either side closes the
// connection. A second request may restrict the first to one process, and gets no answer. The first message about a
// session comes with a read-only descriptor of the session's telemetry (ring/ops/telemetry.h), which the receiver
// closes.
//
// Trust: the socket's permissions decide who may connect; the broker does not trust a request. The owner in a message
// is the guest's own claim. Texts are NUL-padded; a refusal's text is one sentence.
//
// ```cpp
// ring::TraceRequest request_for(std::string_view vm) {
//   ring::TraceRequest request{};
//   request.magic = ring::trace_magic;
//   request.version = ring::telemetry_version;
//   request.slot = ring::any_slot;
//   vm.copy(request.vm, sizeof request.vm - 1);
//   return request;
// }
// ```
#pragma once

#include <cstdint>

#include "ring/ops/telemetry.h"

namespace ring {

inline constexpr std::uint32_t trace_magic = 0x3143'5254;  // "TRC1"
inline constexpr std::uint32_t any_slot = ~0U;

// A client's request. Magic and version come first in every version, in both directions.
struct TraceRequest {
  std::uint32_t magic;
  std::uint32_t version;  // telemetry_version of the client
  std::uint32_t slot;     // any_slot: all slots
  std::uint32_t process;  // the process's number in its guest; 0: any process
  char vm[64];            // NUL-padded; empty: all VMs
};

enum class TraceNews : std::uint32_t {
  Refused,  // `text` is the reason; this is the last message
  Begins,   // a worker runs, claimed or not: `text` is its VM's name; the descriptor comes with this message
  Claimed,  // the process `process` of the guest `peer` has claimed the worker
  Ended,    // the worker has ended, and its telemetry is complete
  Listed,   // all present sessions have been listed; the next messages are about new sessions
};

struct TraceMessage {
  std::uint32_t magic;
  std::uint32_t version;
  TraceNews news;
  std::uint32_t slot;
  std::uint64_t session;  // one broker never reuses this number
  std::uint32_t worker, process, peer, reserved;
  char text[128];  // NUL-terminated
};
static_assert(sizeof(TraceRequest) == 80 && sizeof(TraceMessage) == 168);

// The socket's name in the folder of the VMs' sockets; no VM may have this name.
inline constexpr const char* trace_socket_name = "ivgpud.trace";

}  // namespace ring
