// Waits until a staging chunk is no longer in use.
//
// The last holder of a chunk may have given up its wait (guest/session/channel.cc). The GPU may then still use the
// chunk. The chunk stores the pending use and passes it on to its next holders. A holder touches the chunk's bytes only
// after the wait for the pending use has succeeded.
#pragma once

#include "guest/objects/memory/arena.h"
#include "ring/api/cuda.h"

namespace guest {

// Returns CUDA_SUCCESS if only the holder uses the chunk. After an error the chunk is unchanged, and the holder must
// return it unused.
CUresult await_chunk(Arena::Chunk& chunk);

}  // namespace guest
