// Declares and exports every version of every call of cuda.h, for the files that define the calls. Include this header
// first: otherwise another header includes cuda.h with hidden symbols.
#pragma once

#pragma GCC visibility push(default)
#include "ring/api/cuda.h"
#pragma GCC visibility pop

// beyond.cc exports these calls. The functions that serve them have other names, so that calls within this library are
// not reported as calls of the program.
#define BEYOND(fn) extern "C" decltype(::fn) fn __asm__("simgpu_" #fn);
#include "host/simgpu/api/beyond.def"
