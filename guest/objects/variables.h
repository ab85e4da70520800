// The managed variables that the program has looked up: pages of the arena, mapped at the driver's addresses
// (docs/design/027-managed-variables.md). This class is only the mechanism and knows no CUDA: the map of addresses
// (guest/objects/memory/addresses.h) decides which addresses a call may use, and the worker copies changes between
// these pages and the driver's memory.
//
// Variables may share a page. A cover is a run of pages with one block of the arena. A variable that spans several
// covers has several sections. The other bytes of the pages are unused.
//
// Invariant: pages are mapped only where addresses are reserved for the device, never over the program's memory. A
// cover becomes a reservation again when its last variable ends. Any thread may call this class.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "guest/objects/memory/arena.h"
#include "ring/base/mutex.h"

namespace guest {

class Variables {
 public:
  // Maps [offset, offset + bytes) of the arena again, at any address. Returns null if the mapping failed.
  using MapAgain = std::function<std::byte*(std::uint64_t offset, std::size_t bytes)>;
  // Reserves a range of addresses for the device. Returns false if the range overlaps memory of the program.
  using Reserve = std::function<bool(std::uint64_t start, std::uint64_t bytes)>;

  // `in_place`: worker and program are one process, so that the program uses the driver's bytes directly.
  Variables(Arena& arena, bool in_place, MapAgain map_again, Reserve reserve)
      : arena_(arena), in_place_(in_place), map_again_(std::move(map_again)), reserve_(std::move(reserve)) {}

  struct Piece {
    std::uint64_t start, bytes;
    std::uint64_t arena;  // the offset of the section's bytes
  };
  enum class Outcome : std::uint8_t { Done, TooMany, Taken, NoRoom, Failed };

  // Maps pages of the arena under a variable, unless they are already mapped, and returns the sections to shadow. The
  // variable ends with `owner`, a library or a module.
  Outcome add(std::uint64_t start, std::uint64_t bytes, std::uint64_t owner, std::vector<Piece>& pieces);
  // Ends the variables of an owner. `last`: the last record in which the worker may touch the variables.
  void drop_of(std::uint64_t owner, Use last);
  // Called at the process's end. The program gets a private copy of its variables, because the slot's next process gets
  // the arena.
  void leave();

 private:
  struct Variable {
    std::uint64_t bytes, owner;
  };
  struct Cover {
    std::uint64_t bytes;  // bytes of whole pages
    std::byte* block;
    std::uint32_t variables;
  };
  using All = std::map<std::uint64_t, Variable>;  // keyed by start
  using Covers = std::map<std::uint64_t, Cover>;  // keyed by the first page's address

  Outcome cover(std::uint64_t start, std::uint64_t end) REQUIRES(mutex_);
  Outcome put_pages(std::uint64_t start, std::uint64_t end) REQUIRES(mutex_);
  Covers::iterator first_cover(std::uint64_t start) REQUIRES(mutex_);
  template <class F>
  void each_cover(std::uint64_t start, std::uint64_t bytes, F f) REQUIRES(mutex_);
  void drop_overlapping(std::uint64_t start, std::uint64_t bytes) REQUIRES(mutex_);
  All::iterator drop(All::iterator at) REQUIRES(mutex_);
  void drop_empty(Use last) REQUIRES(mutex_);

  Arena& arena_;
  const bool in_place_;
  const MapAgain map_again_;
  const Reserve reserve_;
  ring::Mutex mutex_;
  All variables_ GUARDED_BY(mutex_);
  Covers covers_ GUARDED_BY(mutex_);
  std::uint64_t bytes_ GUARDED_BY(mutex_) = 0;  // bytes of all variables
};

}  // namespace guest
