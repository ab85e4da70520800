// Creates and ends contexts.
#pragma once

#include "host/simgpu/api/objects.h"

#include <memory>

namespace simgpu {

class Driver;

// Makes a context usable: default limits and an empty legacy stream.
void begin_context(Driver& driver, Context& context, unsigned flags);

// Ends a context: waits for its work, runs the runtime's destructors, drops streams, events, modules and memory. Its
// handle stays known as a destroyed context's, or as an inactive primary context's.
void end_context(Driver& driver, const std::shared_ptr<Context>& context);

// The context of a call's handle; NULL is the current context. Returns null and sets `error` on failure.
std::shared_ptr<Context> context_named(Driver& driver, CUcontext handle, CUresult* error);

}  // namespace simgpu
