// What binds the arena to this process, its worker and the GPU: the window where the guest maps it, hello, by which the
// worker maps it there, too, and the records that register its segments. The session binds it before any thread sends;
// then any thread may ask where a place of it lies, and the arena itself asks for segments under its own lock.
//
// Invariant: once bound, the arena lies still, here and there.
// Trust: the worker says where its arena lies and whether a segment is registered. The address is given to the program
// and sent back to the worker, and never followed here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "guest/objects/arena.h"
#include "guest/region/region.h"
#include "guest/session/channels.h"
#include "guest/session/liveness.h"
#include "guest/session/slot.h"

namespace guest {

class ArenaBinding {
 public:
  ArenaBinding(Liveness& liveness, const Slot& slot, Channels& channels)
      : liveness_(liveness), slot_(slot), channels_(channels) {}

  // Maps [offset, offset + bytes) of the region. False and a log line: it cannot, or the arena is too small.
  bool map(Region& region, std::uint64_t offset, std::uint64_t bytes);
  // Says hello. False: the worker refuses, or the session is lost.
  bool bind();
  // The bound arena, whose segments are asked for here.
  std::unique_ptr<Arena> make();
  void unmap();

  // Where the worker and the GPU see the arena's first byte.
  std::uint64_t device_address() const { return device_address_; }

 private:
  std::byte* map_at_window(Region& region, std::uint64_t offset);
  std::uint64_t first_pin() const;
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
