// Ends a context when the program destroys it, resets it or releases it for the last time.
#pragma once

#include "guest/marshal/custom.h"

namespace guest {

// Sends the call that ends the context. Its streams, events, modules and memory end with it; libraries and kernels
// stay, as in the driver. A primary context's green contexts end with it. `way` replaces the way of the call's line if
// no thread waits for the end; with registered memory this thread does wait. If nothing was sent, the context goes on.
// Preconditions: the context is alive.
Sent end_context(Context& context, int call, std::optional<api::Way> way = {}) REQUIRES(context.mutex);

}  // namespace guest
