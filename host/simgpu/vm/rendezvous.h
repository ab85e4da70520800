// What instructions that all lanes of a warp execute together share with those for some of them. See rendezvous.cc.
#pragma once

#include "host/simgpu/vm/code.h"

namespace simgpu {

// True if all 32 lanes are here. Else the path waits for the others, or, if these can never come, the instruction
// faults; Ctx::stop is to be returned. Ins::e: all lanes.
bool whole_warp(Ctx& c, const Ins* i);

}  // namespace simgpu
