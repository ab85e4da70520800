// Managed variables of the session's modules and libraries, and their shadow copies in the arena
// (docs/design/027-managed-variables.md). The driver has a variable at an address of the worker; the guest maps arena
// bytes at the same address in its own process. Copies keep both equal whenever a program may read the variable.
//
// Each byte has three values: the driver's, the arena's, and the last value on which both agreed, which is private.
// up() and down() copy the bytes that differ from the agreed value, so a side that has not written a byte never
// overwrites the byte of the other side.
//
// Invariant: a variable is listed from its lookup until a take function removes it, before the driver may end it. The
// driver's bytes are therefore valid at each access, even if the guest forgets late. The session calls the take
// functions under ending(), and add() under making().
//
// Trust: a shadow copy is inside a variable that the driver has named, no byte has two copies, and their total is
// bounded. Arena bytes may change at any time; they are copied once, compared and passed on, and never interpreted.
//
// Thread-safety: any thread. The mutex is never held during a driver call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ring/api/cuda.h"
#include "ring/base/mutex.h"
#include "ring/shared/shared.h"

namespace host {

class ShadowCopies {
 public:
  static constexpr std::size_t most_pieces = 4096;

  // A part of a variable with a shadow copy.
  struct Piece {
    std::uint64_t start, arena;  // the address of the piece, and the address of its bytes in the arena
    ring::SharedBytes shared;
    std::vector<std::byte> agreed;  // the agreed bytes of the whole piece
  };
  struct Variable {
    std::uint64_t start = 0, bytes = 0;
    std::uint64_t owner = 0;  // id of the library, or of a module that belongs to no library
    unsigned context = 0;     // the context of the variable's module
    std::string name;
    std::vector<Piece> pieces = {};
  };
  using Variables = std::vector<Variable>;

  // Returns whether there is anything to copy.
  bool any() const { return any_.load(std::memory_order_relaxed); }

  // Adds a variable that the driver has just returned. If the variable is known, its copies stay.
  void found(const Variable& variable);
  // Adds a shadow copy of [start, start + bytes of `shared`), and copies its arena bytes to the driver. Repeating the
  // call changes nothing. CUDA_ERROR_INVALID_VALUE: the range is not inside a variable, or has a different shadow copy.
  // CUDA_ERROR_OUT_OF_MEMORY: the session has too many shadow copies.
  CUresult add(std::uint64_t start, std::uint64_t arena, ring::SharedBytes shared);

  // Copies the program's writes to the driver. Must be called before the GPU gets work.
  void up();
  // Copies the GPU's writes to the program. Must be called before the guest can see that the GPU has done work.
  void down();

  // Remove and return variables that may end: those of a library or module, or those that a context's end affects. A
  // context's end may end the variables of any library.
  Variables take_of(std::uint64_t owner);
  Variables take_of_context(unsigned context);
  void put_back(Variables variables);

  // stop() ends copying after a fault, since the driver's bytes may be gone. go_on() resumes copying after a reset.
  void stop();
  void go_on();

 private:
  using Map = std::map<std::uint64_t, Variable>;  // keyed by start; variables do not overlap

  Map::iterator holder_of(std::uint64_t start, std::uint64_t bytes) REQUIRES(mutex_);
  void count(const Variable& variable, bool more) REQUIRES(mutex_);
  void publish() REQUIRES(mutex_) { any_.store(pieces_ != 0 && !stopped_, std::memory_order_relaxed); }
  template <class Take>
  Variables take_if(Take take);
  template <class Copy>
  void each_piece(Copy copy);

  std::atomic<bool> any_{false};
  ring::Mutex mutex_;
  Map variables_ GUARDED_BY(mutex_);
  std::size_t pieces_ GUARDED_BY(mutex_) = 0, bytes_ GUARDED_BY(mutex_) = 0;  // of all shadow copies
  bool stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace host
