// The state of a running handler: the warp's current path, its frame and its reachable memory. Each worker thread has
// one. Only plain fields and trivial functions, since several instruction sets compile this header.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/simgpu/vm/code.h"

namespace simgpu {

struct Block;
struct Warp;
struct Path;
struct Worker;

// First and last start address of an access of the instruction's size; empty if lo > last.
struct Window {
  std::uint64_t lo = 1;
  std::uint64_t last = 0;
};

// A space addressed by offset: shared, local, param.
struct SpaceView {
  std::byte* base = nullptr;
  std::uint64_t size = 0;
  std::uint64_t stride = 0;  // bytes between lanes
};
enum SpaceIndex : std::uint16_t { space_shared = 0, space_local = 1, space_param = 2 };

enum class Event : std::uint8_t {
  None,
  Moved,    // the paths changed: select again
  Slice,    // the path used up its fuel
  Blocked,  // the path waits
  Fault,
};

struct Ctx {
  std::byte* base[2] = {nullptr, nullptr};         // registers of the frame, constants of the function
  std::uint32_t mask = 0;                          // lanes of the path
  std::uint32_t masked = 0;                        // index into Ins::run
  alignas(64) std::int32_t lanes[warp_size] = {};  // `mask`, all ones or zero for each lane
  SpaceView spaces[3];
  std::uint64_t local_base = 0;  // offset of the frame in each lane's local memory
  Window* windows = nullptr;
  const Code* code = nullptr;
  const Ins* stop = reinterpret_cast<const Ins*>(~std::uintptr_t{63});  // above any instruction
  std::int64_t fuel = 0;                                                // backward branches until the next warp's slice
  std::uint32_t sync_uses = 0;                                          // flag_sync instructions in this slice
  std::uint32_t csr = 0;                                                // current floating-point mode of the processor
  Event event = Event::None;
  bool forced = false;  // a rendezvous that cannot complete continues without the missing lanes
  Path* path = nullptr;
  Warp* warp = nullptr;
  Block* block = nullptr;
  Worker* worker = nullptr;
};

}  // namespace simgpu
