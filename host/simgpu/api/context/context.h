// Contexts: their beginning and their end.
#pragma once

#include "host/simgpu/api/objects.h"

#include <memory>

namespace simgpu {

class Driver;

// Makes a context usable: fresh limits, an empty legacy stream.
void begin_context(Driver& driver, Context& context, unsigned flags);

// Ends its use: waits for its work, runs the runtime's destructors, drops streams, events, modules and memory. Its handle
// stays known, as that of a context that is destroyed or, a primary one, not active.
void end_context(Driver& driver, const std::shared_ptr<Context>& context);

// The context a call names: NULL is the current one. Null with the error to return.
std::shared_ptr<Context> context_named(Driver& driver, CUcontext handle, CUresult* error);

}  // namespace simgpu
