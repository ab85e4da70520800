// cuda.h for the files that define its calls: every version of every entry point declared, and exported. Included
// first, before anything else can bring cuda.h in with hidden symbols.
#pragma once

#pragma GCC visibility push(default)
#include "ring/api/cuda.h"
#pragma GCC visibility pop
