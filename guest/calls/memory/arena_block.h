// Blocks of the arena that a program has allocated: pinned memory and managed memory.
#pragma once

#include <cstddef>

#include "guest/process/process.h"

namespace guest::calls {

// Allocates a block for the program. Returns null and writes a log line if the arena is full or the worker could not
// register more of the arena.
std::byte* allocate_block(Place::Kind kind, std::size_t bytes, unsigned flags, Context& context);
// Returns the error of an allocation for which the arena has no block.
CUresult no_block();

// Frees the program's block of kind `kind` that begins at `start`, after waiting for work that may still use the block.
// `current`: the thread's context, or null.
CUresult free_block(std::uint64_t start, Place::Kind kind, const Context* current);

}  // namespace guest::calls
