// Declares the worker's function for each CUSTOM line and each call of the session's own, from the tables. A function
// gets its decoded and checked record, calls the driver, and fills the reply. call_context.h does everything else.
// GUEST lines need no function (guest_line.h).
#pragma once

#include "host/untrusted/marshal/call_context.h"
#include "ring/api/cuda.h"

namespace host {

// The argument type of each call's function, under the call's name.
namespace call_of {
#define CALL(...)
#define CUSTOM(id, fn, ...) using fn = CallContext<id>;
#define GUEST(...)
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
#define SESSION(id, name, ...) using name = CallContext<id>;
#include "ring/api/session.def"
}  // namespace call_of

namespace calls {
#define CALL(...)
#define CUSTOM(id, fn, ...) CUresult fn(CallContext<id>& a);
#define GUEST(...)
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
#define SESSION(id, name, ...) CUresult name(CallContext<id>& a);
#include "ring/api/session.def"
}  // namespace calls

}  // namespace host
