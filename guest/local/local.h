// Calls that the guest answers by itself, declared from the table with the type that cuda.h gives each.
#pragma once

#include "ring/api/cuda.h"

namespace guest::local {
#define CALL(...)
#define CUSTOM(...)
#define LOCAL(fn, ...) decltype(::fn) fn;
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
}  // namespace guest::local
