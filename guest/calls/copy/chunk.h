// Waits until a staging chunk is no longer in use.
//
// The last holder of a chunk may have given up its wait (guest/session/channel.cc). The GPU may then still read or
// write the chunk. The chunk remembers what there is to wait for, and passes that on to its next holders. No holder
// touches its bytes before that wait has succeeded.
#pragma once

#include "guest/objects/memory/arena.h"
#include "ring/api/cuda.h"

namespace guest {

// CUDA_SUCCESS: the chunk is the holder's alone. On an error the chunk is unchanged, and the holder gives it back as it
// is.
CUresult await_chunk(Arena::Chunk& chunk);

}  // namespace guest
