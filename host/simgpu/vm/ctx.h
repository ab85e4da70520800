// The state that handlers use: the warp's current path, its frame and its reachable memory. Each worker thread has one.
// Several instruction sets compile this header, so it has only plain fields and trivial functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/simgpu/vm/code.h"

namespace simgpu {

struct Block;
struct Warp;
struct Path;
struct Worker;

// The first and the last start address of an access of the instruction's size. If lo > last, the window is empty.
struct Window {
  std::uint64_t lo = 1;
  std::uint64_t last = 0;
};

// A state space that is addressed by offset: shared, local or param.
struct SpaceView {
  std::byte* base = nullptr;
  std::uint64_t size = 0;
  std::uint64_t stride = 0;  // bytes between the memory of consecutive lanes
};
enum SpaceIndex : std::uint16_t { space_shared = 0, space_local = 1, space_param = 2 };

enum class Event : std::uint8_t {
  None,
  Moved,    // the paths have changed: select a path again
  Slice,    // the path has used up its fuel
  Blocked,  // the path waits
  Fault,
};

struct Ctx {
  std::byte* base[2] = {nullptr, nullptr};         // registers of the frame; constants of the function
  std::uint32_t mask = 0;                          // lanes of the path
  std::uint32_t masked = 0;                        // index into Ins::run: 0 full, 1 masked
  alignas(64) std::int32_t lanes[warp_size] = {};  // `mask` expanded to all ones or zero for each lane
  SpaceView spaces[3];
  std::uint64_t local_base = 0;  // offset of the frame in each lane's local memory
  Window* windows = nullptr;
  const Code* code = nullptr;
  const Ins* stop = reinterpret_cast<const Ins*>(~std::uintptr_t{63});  // above the address of any instruction
  // number of backward branches before the next warp runs
  std::int64_t fuel = 0;
  // number of flag_sync instructions in this slice
  std::uint32_t sync_uses = 0;
  std::uint32_t csr = 0;  // current floating-point mode of the processor
  Event event = Event::None;
  bool forced = false;  // a rendezvous that cannot complete goes on without the missing lanes
  Path* path = nullptr;
  Warp* warp = nullptr;
  Block* block = nullptr;
  Worker* worker = nullptr;
};

}  // namespace simgpu
