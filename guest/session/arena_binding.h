// Binds the arena to this process, its worker and the GPU. The guest maps the arena at a window; `hello` makes the
// worker map the arena at the same address; further records register the arena's segments with the GPU. The session
// binds the arena before any thread sends. Afterwards any thread may read addresses, and the arena requests segments
// under its own lock.
//
// Invariant: once bound, the arena keeps its addresses in this process and in the worker. Trust: the worker reports the
// address of its arena and whether a segment is registered. The guest passes that address to the program and back to
// the worker, but never dereferences the address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "guest/objects/memory/arena.h"
#include "guest/region/region.h"
#include "guest/session/channels.h"
#include "guest/session/slot/liveness.h"
#include "guest/session/slot/slot.h"

namespace guest {

class ArenaBinding {
 public:
  ArenaBinding(Liveness& liveness, const Slot& slot, Channels& channels)
      : liveness_(liveness), slot_(slot), channels_(channels) {}

  // Maps [offset, offset + bytes) of the region as the arena. Returns false and writes a log line if the mapping
  // failed, or if the arena is too small.
  bool map(Region& region, std::uint64_t offset, std::uint64_t bytes);
  // Sends `hello`. Returns false if the worker refuses, or if the session is lost.
  bool bind();
  // Makes the arena, which makes this object register the arena's segments. Preconditions: bind() has returned true.
  std::unique_ptr<Arena> make();
  void unmap();

  // Returns the address of the arena's first byte in the worker and on the GPU.
  std::uint64_t device_address() const { return device_address_; }

 private:
  std::byte* map_at_window(Region& region, std::uint64_t offset);
  std::uint64_t first_pin() const;
  bool switch_worker_off();
  Segments::Registered ask_for(std::uint64_t start, std::uint64_t end, bool join);

  Liveness& liveness_;
  const Slot& slot_;
  Channels& channels_;
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::uint64_t window_ = 0;
  std::uint64_t device_address_ = 0;
};

}  // namespace guest
