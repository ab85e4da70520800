// The host's half of each CUSTOM line and of the session's own calls, declared from the tables.
#pragma once

#include "host/untrusted/request.h"
#include "ring/api/cuda.h"

namespace host::calls {

#define CALL(...)
#define CUSTOM(id, fn, ...) CUresult fn(Request& r);
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
#define SESSION(id, name, way, record) CUresult name(Request& r);
#include "ring/api/session.def"

}  // namespace host::calls
