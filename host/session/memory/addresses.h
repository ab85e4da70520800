// The addresses that a guest process may pass to the GPU. One map holds each range with its length, its kind of memory,
// and the object or context with which it ends.
//
// Arguments must be checked values, or come from the driver. Invariant: ranges do not overlap, since the driver never
// returns an address twice. Thread-safety: any thread; lookups share a lock, and changes lock it exclusively. Each copy
// and fill looks its addresses up, which costs one search. The ranges of one owner in one context form a list, so
// ending an owner or a context needs no search of the whole map.
//
// A range must leave the map when its memory ends: the driver may reuse the address.
// docs/design/045-addresses-that-are-gone.md describes how the session ensures this.
//
// Adjacent ranges stay separate. The driver refuses copies and fills across two registrations
// (docs/design/015-joined-registrations.md), and a program that runs over the end of an allocation has a bug. Programs
// may copy across the mapped pieces of one reservation, however. A range therefore stores its reservation, and only
// ranges of one reservation count as joined.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "ring/base/mutex.h"

namespace host {

// Device: an allocation, or a global of a module. Pinned: a registered piece of the arena.
enum class Memory : std::uint8_t { Device, Pinned };

// Stands for a context's number for memory that ends with no context.
inline constexpr std::uint16_t no_context = 0xffff;

struct Range {
  std::uint64_t start = 0, bytes = 0;
  std::uint64_t owner = 0;        // for a global: id of its module or library; 0: none
  std::uint32_t reservation = 0;  // the reservation of a mapped piece; 0: none
  std::uint64_t object = 0;       // for a mapped piece: id of its memory object; 0: no longer known
  std::uint16_t context = 0;      // the context in which the memory was made and with which it ends; or no_context
  Memory kind = Memory::Device;
  // For an allocation: the charge in the session's account (device_memory.h), and the pool (pools.h).
  unsigned device = 0;
  std::uint64_t charged = 0;
  std::uint32_t pool = 0;

  // Returns whether the range is an allocation. A program frees an allocation by its address, and an allocation counts
  // as the session's memory.
  bool allocated() const { return kind == Memory::Device && owner == 0 && reservation == 0; }
};

class Addresses {
 public:
  // `held`, if not null, always has the sum of the allocations' bytes. `ended` is called when the driver has freed an
  // allocation other than by free(); `ended` must not call this object.
  explicit Addresses(std::atomic<std::uint64_t>* held = nullptr, std::function<void(const Range&)> ended = {})
      : held_(held), ended_(std::move(ended)) {}
  // Adds a range. The range replaces a range with the same start.
  void add(const Range& range);
  // Removes an allocation before the driver frees it. Returns nothing if no allocation starts at `start`.
  std::optional<Range> free(std::uint64_t start) { return remove(start, Memory::Device); }
  // Removes a registered piece of the arena. Returns false if none starts at `start`.
  bool unpin(std::uint64_t start) { return remove(start, Memory::Pinned).has_value(); }
  // Removes the mapped pieces of a reservation that begin in [start, start + bytes). Returns the memory object of each
  // piece.
  std::vector<std::uint64_t> unmap(std::uint64_t start, std::uint64_t bytes);
  // Removes the global that starts at `start`, if it belongs to this owner.
  void drop_global(std::uint64_t start, std::uint64_t owner);
  // drop_owned() removes an owner's ranges. drop_context() removes a context's allocations and globals. Both take time
  // in proportion to the ranges removed; drop_context() also visits each list.
  void drop_owned(std::uint64_t owner);
  void drop_context(std::uint32_t context);

  // Returns whether a call may use [start, start + bytes): the bytes are inside one range, or inside adjacent pieces of
  // one reservation. If `bytes` is 0, `start` may also be the end of a range.
  bool contains(std::uint64_t start, std::uint64_t bytes) const;
  // Returns the registered pieces that overlap [start, start + bytes), in ascending order.
  std::vector<Range> pinned_in(std::uint64_t start, std::uint64_t bytes) const;
  // Returns whether the address is inside a range.
  bool knows(std::uint64_t at) const { return contains(at, 1); }
  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  // The owner and the context of a range of device memory. The range ends when either of the two ends.
  struct End {
    std::uint64_t owner;  // 0: none
    std::uint32_t context;
    auto operator<=>(const End&) const = default;
  };
  static End end_of(const Range& range) { return {range.owner, range.context}; }
  // A range in the map. A range of device memory is linked to ranges with the same owner and context. Pinned memory is
  // not linked, since unpin() finds it by address.
  struct Entry : Range {
    explicit Entry(const Range& range) : Range(range) {}
    mutable const Entry* next = nullptr;
    mutable const Entry* previous = nullptr;
  };
  struct ByStart {
    using is_transparent = void;
    bool operator()(const Range& a, const Range& b) const { return a.start < b.start; }
    bool operator()(std::uint64_t a, const Range& b) const { return a < b.start; }
    bool operator()(const Range& a, std::uint64_t b) const { return a.start < b; }
  };
  using Entries = std::set<Entry, ByStart>;
  using Lists = std::map<End, const Entry*>;

  std::optional<Range> remove(std::uint64_t start, Memory kind);
  void end_allocation(Entries::const_iterator at) REQUIRES(mutex_);
  void take_out(Entries::const_iterator at) REQUIRES(mutex_);
  Lists::iterator drop(Lists::iterator list) REQUIRES(mutex_);
  void publish() REQUIRES(mutex_);

  mutable ring::SharedMutex mutex_;
  Entries entries_ GUARDED_BY(mutex_);
  Lists first_ GUARDED_BY(mutex_);  // the head of each list; null: an empty list
  std::uint64_t allocated_ GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint64_t> count_{0};  // number of entries_
  std::atomic<std::uint64_t>* const held_;
  const std::function<void(const Range&)> ended_;
};

}  // namespace host
