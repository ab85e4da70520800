// A worker's message to the broker over its control socket: one message, once, when it is ready. The socket keeps
// message boundaries (SOCK_SEQPACKET). The broker sends nothing back: it closes its end to make the worker end.
//
// Trust: the broker parses this as hostile, since a guest may control a worker; lengths and text are checked there.
#pragma once

#include <cstdint>

namespace host::worker {

inline constexpr std::uint32_t ready_kind = 0x3259'4452;  // "RDY2"

struct ReadyMessage {
  std::uint32_t kind;    // ready_kind
  std::uint32_t layers;  // bits of host::jail::Layer that hold
  std::uint64_t memory;  // bytes of its GPUs together
  char text[240];        // the missing layers and why; NUL-padded, empty if none is missing
};
static_assert(sizeof(ReadyMessage) == 256);

// The reason for a worker's exit. The result of serve() (0 ended, 3 protocol broken) is passed on.
enum ExitCode : int {
  exit_ended = 0,
  exit_usage = 2,
  exit_protocol_broken = 3,
  exit_driver_failed = 4,
  exit_jail_missing = 5,
  exit_region_failed = 6,
  exit_place_failed = 7,
};

}  // namespace host::worker
