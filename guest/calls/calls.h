// The calls that have a function of their own here, declared from the table with the type that cuda.h gives each: the
// LOCAL lines, which the guest answers by itself, and the guest's half of the CUSTOM lines. A call is defined in the file
// that is named like the part of the table where its line stands (ring/api/), or like what it needs beside it.
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
