// Declares and exports every version of every call of cuda.h, for the files that define them. Include it first:
// otherwise another header includes cuda.h with hidden symbols.
#pragma once

#pragma GCC visibility push(default)
#include "ring/api/cuda.h"
#pragma GCC visibility pop

// beyond.cc exports these calls. The functions behind them have other names, so a call by this library is not counted
// as the program's.
#define BEYOND(fn) extern "C" decltype(::fn) fn __asm__("simgpu_" #fn);
#include "host/simgpu/api/beyond.def"
