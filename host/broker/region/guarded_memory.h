// Shared memory that another process can take away while the broker has it mapped: it shrinks the file, or frees pages
// in a file system that is full. The kernel answers the next touch with SIGBUS, which would end the broker and with it
// every VM. A GuardedMemory survives that: a signal handler puts zero pages of this process in the mapping's place and
// marks it as lost, and the broker gives up the one VM whose memory it was (docs/design/046-lost-memory.md).
//
// A SIGBUS outside these mappings, and one that a process sends, has its default action.
//
// Threads: any. The handler takes no lock and allocates nothing. It finds mappings in a list that only grows, whose
// entries are used again.
#pragma once

#include <cstddef>
#include <memory>

#include "host/base/fd.h"

namespace host::broker {

class GuardedMemory {
 public:
  // Maps `bytes` of `memory` from `from` on, to be read and written. Null on failure, and errno says why.
  static std::unique_ptr<GuardedMemory> map(const Fd& memory, std::size_t from, std::size_t bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* base() const { return base_; }
  // Its pages were gone at a touch. It has been zero pages of this process since then, which no other process shares.
  bool is_lost() const;

  // Marks it as lost without a touch: its owner has seen that its pages are gone.
  void give_up() const;

  // Readable after a mapping was lost, until it is read. The descriptor stays this module's.
  static int lost_fd();

 private:
  struct Entry;
  class Handler;
  GuardedMemory(Entry& entry, std::byte* base) : entry_(entry), base_(base) {}

  Entry& entry_;
  std::byte* const base_;
};

}  // namespace host::broker
