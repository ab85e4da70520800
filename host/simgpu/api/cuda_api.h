// cuda.h for the files that define its calls: every version of every entry point declared, and exported. Included
// first, before anything else can bring cuda.h in with hidden symbols.
#pragma once

#pragma GCC visibility push(default)
#include "ring/api/cuda.h"
#pragma GCC visibility pop

// These are exported by beyond.cc. The functions that serve them have names of their own, so that a call by this
// library itself is not taken for a program's.
#define BEYOND(fn) extern "C" decltype(::fn) fn __asm__("simgpu_" #fn);
#include "host/simgpu/api/beyond.def"
