// The host's half of each CUSTOM line and of the session's own calls, declared from the tables. A function gets its
// record taken and checked, calls the driver, and fills the reply. asked.h does the rest.
#pragma once

#include "host/untrusted/marshal/asked.h"
#include "ring/api/cuda.h"

namespace host {

// The argument of each call's function, under the call's name.
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
