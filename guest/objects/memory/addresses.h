// What an address means to CUDA: one map of device, pinned and managed memory. Every other address is the program's
// own. With this map, a call with a wrong address fails in the guest at once.
//
// Any thread may call this class. Every copy and fill looks up each of its addresses once, by a search under a lock.
// Each module and context has a list of the ranges that end with the module or context, so that dropping these ranges
// needs no search of the map.
//
// Adjacent ranges stay separate, as on the host (host/session/memory/addresses.h). A call may use bytes of two adjacent
// ranges as one range only if both are mapped sections of one reservation.
//
// Trust: the worker reports the addresses of device memory. The guest passes these addresses to the program and sends
// them back, but never dereferences them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "guest/objects/memory/reservations.h"
#include "ring/base/mutex.h"

namespace guest {

struct Context;  // defined in guest/process/context.h

// The owner and kind of an address.
struct Place {
  // Unknown: the program's own memory, or no memory. Device: an allocation, or a module's global. Pinned and Managed: a
  // block of the arena, by the block's addresses in this process; Managed only if the GPU uses the same addresses.
  // Registered memory is Pinned (guest/objects/memory/registered.h).
  enum class Kind : std::uint8_t { Unknown, Device, Pinned, Managed } kind = Kind::Unknown;
  unsigned flags = 0;             // flags of pinned or managed memory, as the program passed them
  std::uint32_t reservation = 0;  // the reservation of this mapped section; 0: none
  std::uint64_t start = 0, bytes = 0;
  // For registered memory: the address of the first byte in the program and in the arena. Registered memory has a place
  // at each of the two addresses. 0 for other memory.
  std::uint64_t registered_at = 0, block_at = 0;
  std::uint64_t id = 0;              // unique; the program can query it as CU_POINTER_ATTRIBUTE_BUFFER_ID
  std::uint64_t owner = 0;           // the module or library to which this global belongs, or 0
  std::uint64_t pool = 0;            // handle of the memory's pool; 0: no pool, or the default pool
  std::uint64_t object = 0;          // memory object of a mapped section; 0: no longer known
  bool pooled = false;               // allocated by cuMemAllocAsync or from a pool
  std::uint32_t device = 0;          // device of a mapped section or of pooled memory
  mutable bool sync_memops = false;  // the program may change this value at any time
  Context* context = nullptr;  // the context that created the memory; a place without an owner ends with this context

  // Converts the address of a byte of pinned memory to the address in the arena or in the program.
  std::uint64_t in_arena(std::uint64_t at) const { return block_at == 0 ? at : at - start + block_at; }
  std::uint64_t in_program(std::uint64_t at) const { return registered_at == 0 ? at : at - start + registered_at; }
};

class Addresses {
 public:
  // `keep_free`: whether reserve() keeps device addresses free of this process's own mappings.
  explicit Addresses(bool keep_free = false) : keep_free_(keep_free) {}
  // Sets the arena's address in this process, the arena's address on the device, and the arena's size. Must be called
  // before any look-up.
  void set_arena(std::uint64_t here, std::uint64_t on_device, std::uint64_t bytes);

  // Reserves the range for device memory. Returns false if the range overlaps a mapping of this process.
  bool reserve(std::uint64_t start, std::uint64_t bytes) { return !keep_free_ || reserved_.reserve(start, bytes); }
  // Adds a place, or replaces the place that starts at the same address.
  void add(const Place& place);
  // Removes and returns the place of this kind that begins at `start`. Returns nothing if there is none, if a module
  // owns the place, or if the place is a mapped section of a reservation.
  std::optional<Place> take(std::uint64_t start, Place::Kind kind);
  // Removes the mapped sections of a reservation that begin in [start, start + bytes). Returns the sections' memory
  // objects.
  std::vector<std::uint64_t> unmap(std::uint64_t start, std::uint64_t bytes);
  // Removes the globals of a module or library.
  void drop_owned(std::uint64_t owner);
  // Removes the places that end with a context. Returns the starts of the arena blocks among these places, except
  // registered memory. The caller frees the blocks in the arena.
  std::vector<std::uint64_t> drop_context(const Context& context);

  // Returns whether the arena has the same addresses on the GPU and in this process.
  bool arena_is_at_one_address() const { return arena_here_ == arena_there_; }

  Place find(std::uint64_t inside) const;
  // Returns the kind of [start, start + bytes) if a call may use the bytes as one range; else Unknown. Preconditions:
  // `bytes` is not 0.
  Place::Kind kind_of(std::uint64_t start, std::uint64_t bytes) const;
  // Returns whether any place overlaps [start, start + bytes).
  bool touch(std::uint64_t start, std::uint64_t bytes) const;
  // Sets `sync_memops` of the place that contains this byte, if there is one.
  void set_sync_memops(std::uint64_t inside, bool on);
  // Returns the GPU's address of [at, at + bytes), if the GPU may touch all of these bytes. `at` is an address in
  // device memory, or in pinned memory as this process or the device sees it.
  std::optional<std::uint64_t> device_view(std::uint64_t at, std::uint64_t bytes) const;
  // Returns the GPU's address of a byte of this place.
  std::uint64_t on_device(const Place& place, std::uint64_t at) const {
    return place.kind == Place::Kind::Pinned ? place.in_arena(at) - arena_here_ + arena_there_ : at;
  }

 private:
  // What a place ends with: its owner or, without an owner, its context.
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
  // A place in the map, linked to other places with the same owner or context.
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

  Entries::const_iterator holder_of(std::uint64_t inside) const REQUIRES(mutex_);
  Entries::const_iterator holder_of(std::uint64_t start, std::uint64_t bytes) const REQUIRES(mutex_);
  void take_out(Entries::const_iterator at) REQUIRES(mutex_);
  std::vector<std::uint64_t> drop(const End& end);

  const bool keep_free_;
  std::uint64_t arena_here_ = 0, arena_there_ = 0, arena_bytes_ = 0;
  Reservations reserved_;
  mutable ring::Mutex mutex_;
  Entries entries_ GUARDED_BY(mutex_);
  std::unordered_map<End, const Entry*, HashOfEnd> first_ GUARDED_BY(mutex_);  // heads of the lists; null: empty
};

}  // namespace guest
