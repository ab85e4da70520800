// Variables in managed memory, which a program looks up in a module or a library and then uses by their address, as a
// kernel does.
#pragma once

#include <cstdint>

#include "guest/process/process.h"
#include "ring/api/records.h"

namespace guest {

// Puts pages under a variable that the worker has found, and has the worker mirror it there. `owner`: the library, or the
// module of none. The errors are in the log.
CUresult share_variable(Context& context, std::uint64_t owner, const api::GlobalReply& variable, const char* name);

}  // namespace guest
