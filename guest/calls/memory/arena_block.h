// Blocks of the arena that a program has asked for: pinned memory and managed memory.
#pragma once

#include <cstddef>

#include "guest/process/process.h"

namespace guest::calls {

// Gives the program a block. Null and a line in the log: there is no room, or the worker could register no more.
std::byte* allocate_block(Place::Kind kind, std::size_t bytes, unsigned flags, Context& context);
// The error of an allocation that got no block.
CUresult no_block();

// Ends the program's block of this kind that begins there, once the work under way is done, which may still use it.
// `current`: the thread's context, or null.
CUresult free_block(std::uint64_t start, Place::Kind kind, const Context* current);

}  // namespace guest::calls
