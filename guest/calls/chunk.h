// Waiting until nobody uses a staging chunk any more.
//
// A chunk may come with a use that its last holder has not seen the end of, because its wait was given up
// (guest/session/channel.cc): the GPU may still read or write it. Such a chunk goes from hand to hand with what there
// is to wait for, and nobody touches its bytes before.
#pragma once

#include "guest/objects/arena.h"
#include "ring/api/cuda.h"

namespace guest {

// CUDA_SUCCESS: the chunk is the holder's alone. Else it stays as it is, to be given back so.
CUresult await_chunk(Arena::Chunk& chunk);

}  // namespace guest
