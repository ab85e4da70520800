// The messages between a worker and its broker over the worker's control socket, which keeps message boundaries
// (SOCK_SEQPACKET). The worker begins with one ReadyMessage; under MPS the listener of its filter is beside it
// (host/broker/mps/mps_door.h). After that both sides send MemoryMessages
// (docs/design/029-memory-quotas.md). The broker closes its end to make the worker end. A broker that takes over a
// worker of an earlier one says so first: by a message of the same form, all of whose words but `kind` are 0, and a
// descriptor beside it (host/base/process/life_line.h).
//
// Trust: the broker parses all of this as hostile, since a guest may control a worker; lengths, numbers and text are
// checked there, and how often a worker speaks is bounded. The worker believes its broker.
#pragma once

#include <cstdint>

#include "ring/layout/layout.h"

namespace host::worker {

inline constexpr std::uint32_t ready_kind = 0x3459'4452;  // "RDY4"

struct ReadyGpu {
  std::uint8_t uuid[16];
  std::uint64_t memory;  // bytes
};

struct ReadyMessage {
  std::uint32_t kind;               // ready_kind
  std::uint32_t layers;             // bits of host::jail::Layer that hold
  std::uint32_t gpus;               // how many it has
  std::uint32_t init;               // what cuInit has answered: a CUresult
  ReadyGpu gpu[ring::max_devices];  // by its ordinals
  std::uint32_t rm_client;          // its driver's client of the resource manager; 0: it has seen none
  char text[236];                   // the missing layers and why; NUL-padded, empty if none is missing
};
static_assert(sizeof(ReadyMessage) == 256 + ring::max_devices * sizeof(ReadyGpu));

inline constexpr std::uint32_t memory_kind = 0x314d'454d;  // "MEM1"

inline constexpr std::uint32_t adopt_kind = 0x3154'4441;  // "ADT1"

enum class MemoryWord : std::uint32_t {
  // From a worker. It asks one question at a time.
  Borrow = 1,  // it needs `bytes` more of a device
  Room,        // how much could it still get?
  Return,      // it gives `bytes` back, unasked or as the answer to Collect
  // From the broker.
  Lend,     // the answer to Borrow: `bytes` are lent, at least as many as were asked for, or none
  HasRoom,  // the answer to Room: `bytes` besides what is lent already, of the VM's `total`
  Collect,  // give back what is not used
};

struct MemoryMessage {
  std::uint32_t kind;  // memory_kind
  MemoryWord word;
  std::uint32_t device;    // an ordinal of the worker's
  std::uint32_t sequence;  // the asking side chooses it, and the answer repeats it; 0: unasked
  std::uint64_t bytes;
  std::uint64_t total;  // HasRoom alone
};
static_assert(sizeof(MemoryMessage) == 32);

// In place of bytes where nothing bounds the VM.
inline constexpr std::uint64_t unbounded = ~std::uint64_t{0};

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
