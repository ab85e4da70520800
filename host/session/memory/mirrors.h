// Managed variables of the session's modules and libraries, and their mirrors in the arena
// (docs/design/027-managed-variables.md). The driver has a variable at an address of the worker's; the guest has bytes of
// the arena at the same address of its own. A mirror keeps the two alike, by copies at the moments when a program may look.
//
// Each byte has three values: the driver's, the arena's, and the one on which both agreed last, which is private. up() and
// down() copy the bytes that differ from that, so that what one side has not written never replaces what the other has.
//
// Invariant: a variable is here from its lookup until, before the driver may end it, one of the take functions. So the
// driver's bytes are there whenever they are touched, also if the guest forgets nothing in time. The session calls them
// under ending(), and add() under making().
//
// Trust: a mirror lies within a variable that the driver has named, each byte of it in one mirror, and all of them are
// bounded. The arena's bytes may change at any time; they are copied out once, compared and handed on, and mean nothing here.
//
// Thread-safety: any thread. The mutex is never held while the driver is called.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "ring/api/cuda.h"
#include "ring/shared/shared.h"

namespace host {

class Mirrors {
 public:
  static constexpr std::size_t most_pieces = 4096;

  // A part of a variable that is mirrored.
  struct Piece {
    std::uint64_t start, arena;  // where it begins, and where its bytes do in the arena
    ring::SharedBytes shared;
    std::vector<std::byte> agreed;  // its size is the piece's
  };
  struct Variable {
    std::uint64_t start = 0, bytes = 0;
    std::uint64_t owner = 0;  // the id of the library, or of a module that belongs to none
    unsigned context = 0;     // of its module
    std::string name;
    std::vector<Piece> pieces = {};
  };
  using Variables = std::vector<Variable>;

  // Whether there is something to copy.
  bool any() const { return any_.load(std::memory_order_relaxed); }

  // Notes a variable that the driver has just named. One that is known keeps its mirrors.
  void found(const Variable& variable);
  // Mirrors [start, start + bytes of `shared`), whose bytes in the arena become the driver's. The same once more changes
  // nothing. CUDA_ERROR_INVALID_VALUE: that is no variable's, or has a mirror elsewhere. CUDA_ERROR_OUT_OF_MEMORY: too much.
  CUresult add(std::uint64_t start, std::uint64_t arena, ring::SharedBytes shared);

  // Call it before the GPU gets something to do: the program's writes become the driver's.
  void up();
  // Call it before the guest can see that the GPU has done something: the GPU's writes become the program's.
  void down();

  // Take out what may end: with a library or module; with a context, whose end may take variables of any library along.
  Variables take_of(std::uint64_t owner);
  Variables take_of_context(unsigned context);
  void put_back(Variables variables);

  // After a fault nothing is copied, since the driver's bytes may not be there any more; a reset lets the copies go on.
  void stop();
  void go_on();

 private:
  using Map = std::map<std::uint64_t, Variable>;  // by start; they do not overlap

  Map::iterator holder_of(std::uint64_t start, std::uint64_t bytes);
  void count(const Variable& variable, bool more);
  void publish() { any_.store(pieces_ != 0 && !stopped_, std::memory_order_relaxed); }
  template <class Take>
  Variables take_if(Take take);
  template <class Copy>
  void each_piece(Copy copy);

  std::atomic<bool> any_{false};
  std::mutex mutex_;
  Map variables_;
  std::size_t pieces_ = 0, bytes_ = 0;  // of all mirrors
  bool stopped_ = false;
};

}  // namespace host
