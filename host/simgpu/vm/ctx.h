// The view of a handler while it runs: the current path of a warp, its frame, the memory it may reach. One Ctx belongs
// to one worker thread. Only plain fields and no functions of any size: this header is compiled for several instruction
// sets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/simgpu/vm/code.h"

namespace simgpu {

struct Block;
struct Warp;
struct Path;
struct Worker;

// First and last address at which an access of the instruction's size may begin; empty while lo > last.
struct Window {
  std::uint64_t lo = 1;
  std::uint64_t last = 0;
};

// A space that is reached by offset: shared, local, param.
struct SpaceView {
  std::byte* base = nullptr;
  std::uint64_t size = 0;
  std::uint64_t stride = 0;  // from lane to lane
};
enum SpaceIndex : std::uint16_t { space_shared = 0, space_local = 1, space_param = 2 };

enum class Event : std::uint8_t {
  None,
  Moved,    // the paths changed: choose again
  Slice,    // the path used up its fuel
  Blocked,  // the path waits
  Fault,
};

struct Ctx {
  std::byte* base[2] = {nullptr, nullptr};         // registers of the frame, constants of the function
  std::uint32_t mask = 0;                          // lanes of the path
  std::uint32_t masked = 0;                        // which of Ins::run
  alignas(64) std::int32_t lanes[warp_size] = {};  // `mask`, all ones or zero for each lane
  SpaceView spaces[3];
  std::uint64_t local_base = 0;  // of the frame in each lane's local memory
  Window* windows = nullptr;
  const Code* code = nullptr;
  const Ins* stop = reinterpret_cast<const Ins*>(~std::uintptr_t{63});  // above any instruction
  std::int64_t fuel = 0;        // backward branches until the next look at the other warps
  std::uint32_t sync_uses = 0;  // of flag_sync instructions since the slice began
  std::uint32_t csr = 0;        // the processor's floating-point mode as it is now
  Event event = Event::None;
  bool forced = false;  // a rendezvous of lanes that cannot complete is to proceed with those that came
  Path* path = nullptr;
  Warp* warp = nullptr;
  Block* block = nullptr;
  Worker* worker = nullptr;
};

}  // namespace simgpu
