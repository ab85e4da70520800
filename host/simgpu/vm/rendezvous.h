// A helper for instructions that all lanes of a warp execute together. rendezvous.cc also handles instructions for some
// lanes.
#pragma once

#include "host/simgpu/vm/code.h"

namespace simgpu {

// Returns true if all 32 lanes have arrived. Otherwise the handler must return Ctx::stop: the path waits for the
// missing lanes, or the instruction has faulted because they cannot arrive. Ins::e: all lanes.
bool whole_warp(Ctx& c, const Ins* i);

}  // namespace simgpu
