// The addresses that a guest process may name to the GPU: one map, which knows of each range what memory it is, how
// long it is, and with what it ends.
//
// Takes only checked values, and the driver's. Invariant: ranges do not overlap, as the driver gives none twice.
// Thread-safe: lookups share a lock, changes take it alone. Whether a range of bytes may be named is asked for each
// copy and fill, and costs one search; what ends with a module or a context is found in their own list, however many
// ranges there are.
//
// Two ranges that touch are two: the driver refuses a copy or a fill that reaches from one registration into the next
// (docs/design/015-joined-registrations.md), and a program that runs over the end of an allocation has made a mistake,
// whatever lies behind it. The mapped pieces of one reservation are one: programs copy across them. So a range says to
// which reservation it belongs, and nothing else joins it to a neighbour.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

namespace host {

// Device: an allocation, or a global. Pinned: a registered piece of the arena.
enum class Memory : std::uint8_t { Device, Pinned };

struct Range {
  std::uint64_t start = 0, bytes = 0;
  std::uint64_t owner = 0;        // the id of the module or library whose global it is; 0: none
  std::uint32_t reservation = 0;  // whose mapped piece it is; 0: it stands alone
  std::uint16_t context = 0;      // device memory that no object owns ends with it
  Memory kind = Memory::Device;

  // An allocation: freed by its address, counted as the session's memory.
  bool allocated() const { return kind == Memory::Device && owner == 0; }
};

class Addresses {
 public:
  // `held`, where there is one, is kept at the sum of the allocations' bytes.
  explicit Addresses(std::atomic<std::uint64_t>* held = nullptr) : held_(held) {}
  // In place of what starts there.
  void add(const Range& range);
  // False: no allocation starts there.
  bool free(std::uint64_t start) { return remove(start, Memory::Device); }
  // False: no registered piece of the arena starts there.
  bool unpin(std::uint64_t start) { return remove(start, Memory::Pinned); }
  // What an object owns, and the allocations in a context that ends. They take as long as there is of it.
  void drop_owned(std::uint64_t owner) {
    if (owner != 0) drop({owner, 0});
  }
  void drop_allocated(std::uint32_t context) { drop({0, context}); }

  // Whether [start, start + bytes) may be named as one: inside of one range, or of pieces that touch and have the same
  // reservation. Of no bytes, its start alone counts, and the end of a range is inside.
  bool contains(std::uint64_t start, std::uint64_t bytes) const;
  // The registered pieces that have a byte of [start, start + bytes), in order.
  std::vector<Range> pinned_in(std::uint64_t start, std::uint64_t bytes) const;
  // The number of them.
  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  // With what a range of device memory ends: its owner, or where it has none, its context.
  struct End {
    std::uint64_t owner;
    std::uint32_t context;
    bool operator==(const End&) const = default;
  };
  struct HashOfEnd {
    std::size_t operator()(const End& end) const { return std::hash<std::uint64_t>()(end.owner ^ end.context); }
  };
  static End end_of(const Range& range) { return {range.owner, range.owner == 0 ? range.context : 0u}; }
  // A range in the map, linked to those that end with the same: device memory alone, since pinned memory ends by its
  // address.
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

  bool remove(std::uint64_t start, Memory kind);
  void take_out(Entries::const_iterator at);
  void drop(const End& end);
  void publish();

  mutable std::shared_mutex mutex_;
  Entries entries_;
  std::unordered_map<End, const Entry*, HashOfEnd> first_;  // of each list; null: it is empty
  std::uint64_t allocated_ = 0;
  std::atomic<std::uint64_t> count_{0};  // of entries_
  std::atomic<std::uint64_t>* const held_;
};

}  // namespace host
