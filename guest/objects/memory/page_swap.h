// Replaces the pages under a range of the program's memory and keeps their contents, while other threads run and write.
// Their writes only take longer. Exception: another thread's system call that accesses the range at that moment fails
// with EFAULT, since only faults of user code can wait.
//
// No write is lost. swap_in() write-protects the private pages by userfaultfd, copies them and replaces them in one
// step. Writers sleep at the old pages and then write to the new ones. swap_out() first puts empty private pages there,
// whose faults wait, so no thread can write to the block by the old address. Then it copies the block into other
// private pages and moves these there. Without userfaultfd both need a process with one thread.
//
// While writers sleep, the calling thread writes only to its stack and runs no signal handler: the range may hold any
// part of the process's heap. Hence the range must not hold this thread's stack.
#pragma once

#include <cstddef>
#include <cstdint>

namespace guest {

enum class Swapped : std::uint8_t { Yes, ThreadsRun, No };

struct Piece {
  std::byte* at;      // aligned to pages
  std::size_t bytes;  // a multiple of the page size
  int protection;     // PROT_* flags of the range, which it keeps
};

// Replaces private anonymous pages by `again`, a shared mapping of the whole block, which `block` maps as well.
// Consumes `again`: on failure it is unmapped, and the range is unchanged. `helpers` threads help to copy.
Swapped swap_in(const Piece& piece, std::byte* block, std::byte* again, unsigned helpers);
// Replaces a mapping of the block by private anonymous pages.
Swapped swap_out(const Piece& piece, const std::byte* block, unsigned helpers);
// The same without checking for other threads. Allocates no heap memory, so that a forked child can call it.
bool copy_out(const Piece& piece, const std::byte* block);

// Whether this machine can make other threads wait.
bool can_hold_writers();

}  // namespace guest
