// The calls that have a function of their own in the guest: the LOCAL lines of the table, which the guest answers by
// itself, and the guest's half of the CUSTOM lines. Each is declared from the table, with the type that cuda.h gives
// it. A call is defined in the file named like the part of the table that has its line (ring/api/), or like the work
// that several calls share. NARROW lines have no function of their own: guest/calls/narrow.h.
#pragma once

#include "ring/api/cuda.h"

namespace guest::calls {
#define CALL(...)
#define CUSTOM(id, fn, ...) decltype(::fn) fn;
#define LOCAL(fn, ...) decltype(::fn) fn;
#define NARROW(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
}  // namespace guest::calls
