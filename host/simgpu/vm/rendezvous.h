// Shared by instructions for all lanes of a warp and for some of them (rendezvous.cc).
#pragma once

#include "host/simgpu/vm/code.h"

namespace simgpu {

// True if all 32 lanes have arrived. Otherwise return Ctx::stop: the path waits for missing lanes, or the instruction
// faults if they cannot arrive. Ins::e: all lanes.
bool whole_warp(Ctx& c, const Ins* i);

}  // namespace simgpu
