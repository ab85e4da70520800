// Creates and ends contexts.
#pragma once

#include "host/simgpu/api/objects.h"

#include <memory>

namespace simgpu {

class Driver;

// Makes a context usable: default limits and an empty legacy stream.
void begin_context(Driver& driver, Context& context, unsigned flags);

// Ends a context: waits for its work, runs the destructors of the runtime, and drops streams, events, modules and
// memory. The handle of a created context then counts as destroyed, that of a primary context as inactive.
void end_context(Driver& driver, const std::shared_ptr<Context>& context);

// Returns the context of a handle; NULL stands for the current context. On failure, returns null and sets `error`.
std::shared_ptr<Context> context_named(Driver& driver, CUcontext handle, CUresult* error);

}  // namespace simgpu
