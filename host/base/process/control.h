// Messages between a worker and its broker over the control socket, which keeps message boundaries (SOCK_SEQPACKET).
// The worker first sends one ReadyMessage; under MPS it attaches the listener of its proxy
// (host/broker/mps/mps_connect_proxy.h). Then both sides exchange MemoryMessages (docs/design/029-memory-quotas.md). The broker
// closes its end to end the worker. A broker that takes over an earlier broker's worker first sends a message of the
// same size. Its `kind` is adopt_kind, its other words are 0, and a pipe is attached (host/base/process/liveness_pipe.h).
//
// Trust: a guest may control its worker, so the broker parses every message as hostile. It checks lengths, numbers and
// text, and bounds how often a worker may send. The worker trusts its broker.
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
  std::uint32_t gpus;               // GPUs that the worker has
  std::uint32_t init;               // the CUresult of cuInit
  ReadyGpu gpu[ring::max_devices];  // indexed by the worker's ordinals
  std::uint32_t rm_client;          // the driver's resource-manager client; 0: none seen
  char text[236];                   // missing layers and the reasons; NUL-padded, empty if none is missing
};
static_assert(sizeof(ReadyMessage) == 256 + ring::max_devices * sizeof(ReadyGpu));

inline constexpr std::uint32_t memory_kind = 0x314d'454d;  // "MEM1"

inline constexpr std::uint32_t adopt_kind = 0x3154'4441;  // "ADT1"

enum class MemoryWord : std::uint32_t {
  // From a worker, which asks one question at a time.
  Reserve = 1,  // the worker needs `bytes` more on a device
  Headroom,     // how much could the worker still get?
  Return,       // the worker gives `bytes` back, unasked or in answer to Collect
  // From the broker.
  Reserved,     // answers Reserve: grants `bytes`, at least as many as requested, or 0
  HasHeadroom,  // answers Headroom: `bytes` available besides those granted, of the VM's `total`
  Collect,      // asks for unused bytes back
};

struct MemoryMessage {
  std::uint32_t kind;  // memory_kind
  MemoryWord word;
  std::uint32_t device;    // the worker's ordinal
  std::uint32_t sequence;  // chosen by the requester and repeated in the answer; 0: unasked
  std::uint64_t bytes;
  std::uint64_t total;  // HasHeadroom only
};
static_assert(sizeof(MemoryMessage) == 32);

// The value of `bytes` if no quota bounds the VM.
inline constexpr std::uint64_t unbounded = ~std::uint64_t{0};

// Exit codes of a worker. serve() returns 0 (session ended) or 3 (protocol broken), and the worker exits with that.
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
