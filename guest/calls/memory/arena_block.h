// Blocks of the arena that a program has allocated: pinned memory and managed memory.
#pragma once

#include <cstddef>

#include "guest/process/process.h"

namespace guest::calls {

// Allocates a block for the program. Null and a log line: the arena is full, or the worker could register no more.
std::byte* allocate_block(Place::Kind kind, std::size_t bytes, unsigned flags, Context& context);
// The error of an allocation that found no block.
CUresult no_block();

// Frees the program's block of this kind that begins there, after waiting for work that may still use it. `current`:
// the thread's context, or null.
CUresult free_block(std::uint64_t start, Place::Kind kind, const Context* current);

}  // namespace guest::calls
