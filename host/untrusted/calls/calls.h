// Declares the worker's function for each CUSTOM line and each call of the session's own, from the tables. A function
// gets its decoded and checked record, calls the driver, and fills the reply. asked.h does the rest.
#pragma once

#include "host/untrusted/marshal/asked.h"
#include "ring/api/cuda.h"

namespace host {

// The argument type of each call's function, under the call's name.
namespace asked {
#define CALL(...)
#define CUSTOM(id, fn, ...) using fn = Asked<id>;
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
#define SESSION(id, name, ...) using name = Asked<id>;
#include "ring/api/session.def"
}  // namespace asked

namespace calls {
#define CALL(...)
#define CUSTOM(id, fn, ...) CUresult fn(Asked<id>& a);
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
#define SESSION(id, name, ...) CUresult name(Asked<id>& a);
#include "ring/api/session.def"
}  // namespace calls

}  // namespace host
