// The meaning of an address to CUDA: one map of device memory and pinned memory. Any other is the program's own.
// Guest-side truth, so that a call with a wrong address fails at once.
//
// Any thread may call it. Every copy and fill asks once for each of its addresses, and that is one search under a lock.
// A module and a context each have a list of the ranges that end with them, so dropping these looks at no others.
//
// Two ranges that touch are two, as on the host (host/session/addresses.h): only the mapped pieces of one reservation
// may be named together.
//
// Trust: where device memory lies is the worker's word. It is passed on to the program and sent back, and nothing here
// follows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "guest/objects/reservations.h"

namespace guest {

struct Context;  // guest/process/context.h

// What an address belongs to.
struct Place {
  // Unknown: the program's own memory, or nobody's. Device: an allocation, or a module's global. Pinned: a block of the
  // arena, by its addresses in this process.
  enum class Kind : std::uint8_t { Unknown, Device, Pinned } kind = Kind::Unknown;
  unsigned flags = 0;             // of pinned memory, as the program gave them
  std::uint32_t reservation = 0;  // whose mapped piece it is; 0: it stands alone
  std::uint64_t start = 0, bytes = 0;
  std::uint64_t id = 0;        // unique: CU_POINTER_ATTRIBUTE_BUFFER_ID
  std::uint64_t owner = 0;     // the module or library whose global it is, or 0
  Context* context = nullptr;  // in which it was made; what has no owner ends with it
};

class Addresses {
 public:
  // `keep_free`: device memory is kept out of this process's own mappings.
  explicit Addresses(bool keep_free = false) : keep_free_(keep_free) {}
  // The arena lies here, and the GPU sees it there. Before any thread asks.
  void set_arena(std::uint64_t here, std::uint64_t on_device, std::uint64_t bytes);

  // Keeps the range for device memory. False: something of this process lies there.
  bool reserve(std::uint64_t start, std::uint64_t bytes) { return !keep_free_ || reserved_.reserve(start, bytes); }
  // In place of what starts there.
  void add(const Place& place);
  // What of this kind starts there and is no module's is gone, and given back; else nothing.
  std::optional<Place> take(std::uint64_t start, Place::Kind kind);
  // A module's or library's globals are gone.
  void drop_owned(std::uint64_t owner);
  // What a context takes along is gone. The starts of the pinned blocks in it: their room is the arena's.
  std::vector<std::uint64_t> drop_context(const Context& context);

  Place find(std::uint64_t inside) const;
  // What all of [start, start + bytes) is, where it may be named as one; else Unknown. `bytes` is not 0.
  Place::Kind kind_of(std::uint64_t start, std::uint64_t bytes) const;
  // Where the GPU sees [at, at + bytes) when it may touch all of it: device memory, or pinned memory by its address
  // here or on the device.
  std::optional<std::uint64_t> device_view(std::uint64_t at, std::uint64_t bytes) const;
  // Where the GPU sees a byte of this place.
  std::uint64_t on_device(const Place& place, std::uint64_t at) const {
    return place.kind == Place::Kind::Pinned ? at - arena_here_ + arena_there_ : at;
  }

 private:
  // With what a place ends: its owner, or where it has none, its context.
  struct End {
    std::uint64_t owner;
    const Context* context;
    bool operator==(const End&) const = default;
  };
  struct HashOfEnd {
    std::size_t operator()(const End& end) const {
      return std::hash<std::uint64_t>()(end.owner) ^ std::hash<const void*>()(end.context);
    }
  };
  static End end_of(const Place& place) { return {place.owner, place.owner == 0 ? place.context : nullptr}; }
  // A place in the map, linked to those that end with the same.
  struct Entry : Place {
    explicit Entry(const Place& place) : Place(place) {}
    mutable const Entry* next = nullptr;
    mutable const Entry* previous = nullptr;
  };
  struct ByStart {
    using is_transparent = void;
    bool operator()(const Place& a, const Place& b) const { return a.start < b.start; }
    bool operator()(std::uint64_t a, const Place& b) const { return a < b.start; }
    bool operator()(const Place& a, std::uint64_t b) const { return a.start < b; }
  };
  using Entries = std::set<Entry, ByStart>;

  Entries::const_iterator holder_of(std::uint64_t inside) const;
  void take_out(Entries::const_iterator at);
  std::vector<std::uint64_t> drop(const End& end);

  const bool keep_free_;
  std::uint64_t arena_here_ = 0, arena_there_ = 0, arena_bytes_ = 0;
  Reservations reserved_;
  mutable std::mutex mutex_;
  Entries entries_;
  std::unordered_map<End, const Entry*, HashOfEnd> first_;  // of each list; null: it is empty
};

}  // namespace guest
