// The calls that need a handwritten function in the guest: LOCAL lines, which the guest answers itself, and the guest's
// half of CUSTOM and GUEST lines. The table declares each call with its type in cuda.h. A source file is named after
// the part of the table that has the call's line (ring/api/), or after the work that several calls share.
#pragma once

#include "ring/api/cuda.h"

namespace guest::calls {
#define CALL(...)
#define CUSTOM(id, fn, ...) decltype(::fn) fn;
#define LOCAL(fn, ...) decltype(::fn) fn;
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
}  // namespace guest::calls
