// The guest's half of each CUSTOM line, declared from the table with the type that cuda.h gives it.
#pragma once

#include "ring/api/cuda.h"

namespace guest::custom {
#define CALL(...)
#define CUSTOM(id, fn, ...) decltype(::fn) fn;
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
}  // namespace guest::custom
