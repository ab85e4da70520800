// Replaces the pages under a range of the program's memory and keeps their contents, while other threads run and write.
// The other threads' writes only take longer. Exception: another thread's system call that accesses the range at that
// moment fails with EFAULT, since only faults of user code can wait.
//
// No write is lost. swap_in() write-protects the private pages by userfaultfd, copies them and replaces them in one
// step. Writers sleep at the old pages and then write to the new pages. swap_out() first maps empty private pages at
// the range; a thread that touches such a page waits, so no thread can write to the block through the old address.
// swap_out() then copies the block into other private pages and moves these pages to the range. Without userfaultfd,
// both functions need a process with one thread.
//
// While writers sleep, the calling thread writes only to its stack and runs no signal handler, since the range may
// contain any part of the process's heap. Hence the range must not contain the calling thread's stack.
#pragma once

#include <cstddef>
#include <cstdint>

namespace guest {

enum class Swapped : std::uint8_t { Yes, ThreadsRun, No };

struct Piece {
  std::byte* at;      // aligned to pages
  std::size_t bytes;  // a multiple of the page size
  int protection;     // PROT_* flags of the range, which stay the same
};

// Replaces private anonymous pages by `again`, a shared mapping of the whole block. `block` is another mapping of the
// same block. Takes ownership of `again`: on failure `again` is unmapped, and the range is unchanged. `helpers` threads
// help to copy.
Swapped swap_in(const Piece& piece, std::byte* block, std::byte* again, unsigned helpers);
// Replaces a mapping of the block by private anonymous pages.
Swapped swap_out(const Piece& piece, const std::byte* block, unsigned helpers);
// Like swap_out(), but does not check for other threads. Allocates no heap memory, so that a forked child can call this
// function.
bool copy_out(const Piece& piece, const std::byte* block);

// Returns whether this machine can make other threads wait.
bool can_hold_writers();

}  // namespace guest
