// Shared memory whose pages another process can take away while the broker maps it, by truncating the file or by
// filling its file system. The next access then raises SIGBUS, which would kill the broker and so end every VM.
// GuardedMemory handles the signal: it replaces the mapping by private zero pages and marks it as lost. The broker then
// gives up the VM that used the memory (docs/design/046-lost-memory.md).
//
// A SIGBUS outside these mappings, or sent by a process, has its default action.
//
// Threads: any. The handler takes no lock and allocates nothing. It searches a list that only grows; unused entries are
// reused.
#pragma once

#include <cstddef>
#include <memory>

#include "host/base/fd.h"

namespace host::broker {

class GuardedMemory {
 public:
  // Maps `bytes` of `memory` from `from` on, for reading and writing. Null on failure, and errno has the reason.
  [[nodiscard]] static std::unique_ptr<GuardedMemory> map(const Fd& memory, std::size_t from, std::size_t bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* base() const { return base_; }
  // True after an access found the pages gone. Since then base() points to private zero pages.
  bool is_lost() const;

  // Marks the memory as lost without an access, because its owner knows that the pages are gone.
  void give_up() const;

  // Becomes readable when a mapping is lost; reading resets it. This module owns the descriptor.
  static int lost_fd();

 private:
  struct Entry;
  class Handler;
  GuardedMemory(Entry& entry, std::byte* base) : entry_(entry), base_(base) {}

  Entry& entry_;
  std::byte* const base_;
};

}  // namespace host::broker
