// Variables in managed memory. A program looks a variable up in a module or library, and then uses the variable's
// address on the host as a kernel does on the GPU.
#pragma once

#include <cstdint>

#include "guest/process/process.h"
#include "ring/api/records.h"

namespace guest {

// Maps pages at the address of a variable that the worker has found, and makes the worker copy changes between these
// pages and the GPU. `owner`: the library, or the module if it belongs to no library. Errors go into the log.
CUresult share_variable(Context& context, std::uint64_t owner, const api::GlobalReply& variable, const char* name);

}  // namespace guest
