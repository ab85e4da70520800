// Puts other pages under a piece of the program's memory, with the contents kept, while the program's other threads run
// and write. To such a thread nothing happens but that a write takes long. One exception: a system call of another
// thread into the piece, in just that moment, fails with EFAULT, since only faults of user code can be made to wait.
//
// How no write is lost: to leave private pages, they are write-protected by userfaultfd, copied and replaced in one step;
// writers sleep at the old pages and then write to the new ones. To come back, one step puts empty private pages there,
// whose faults wait. The block, to which nobody can write any more by the old address, is copied into other private pages,
// and a second step puts these there. Without
// userfaultfd this is possible only while the process has one thread.
//
// While writers sleep, the calling thread writes to no memory but its stack, and runs no signal handler: the piece may
// hold anything of the process's heap. For that reason the piece must not hold this thread's stack.
#pragma once

#include <cstddef>
#include <cstdint>

namespace guest {

enum class Swapped : std::uint8_t { Yes, ThreadsRun, No };

struct Piece {
  std::byte* at;      // aligned to pages
  std::size_t bytes;  // of whole pages
  int protection;     // PROT_*, that the piece has and keeps
};

// Replaces private anonymous pages by `again`, a shared mapping of the block of as many bytes, which `block` maps as
// well. `again` is gone afterwards, or is unmapped on failure; then the piece is as it was. So many threads help to copy.
Swapped swap_in(const Piece& piece, std::byte* block, std::byte* again, unsigned helpers);
// Replaces a mapping of the block by private anonymous pages.
Swapped swap_out(const Piece& piece, const std::byte* block, unsigned helpers);
// The same without looking for other threads. It allocates no memory of the heap, so that a forked child can call it.
bool copy_out(const Piece& piece, const std::byte* block);

// Whether another thread can be made to wait on this machine.
bool can_hold_writers();

}  // namespace guest
