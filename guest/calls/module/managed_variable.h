// Variables in managed memory. A program looks them up in a module or library, and then uses their address like a
// kernel.
#pragma once

#include <cstdint>

#include "guest/process/process.h"
#include "ring/api/records.h"

namespace guest {

// Maps pages under a variable that the worker has found, and makes the worker shadow it there. `owner`: the library, or
// the module if no library owns it. Errors go into the log.
CUresult share_variable(Context& context, std::uint64_t owner, const api::GlobalReply& variable, const char* name);

}  // namespace guest
