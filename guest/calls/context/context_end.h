// The end of a context: its program destroys it, resets it, or releases it for the last time.
#pragma once

#include "guest/marshal/custom.h"

namespace guest {

// Sends the call that ends the context. Its streams, events, modules and memory are gone afterwards; libraries and
// kernels stay, as in the driver. The green contexts of a primary one end with it. `way` replaces the way of the call's line where no thread waits for the end; with registered
// memory this thread does. If
// nothing was sent, the context goes on. Preconditions: the context's mutex is held, and the context lives.
Sent end_context(Context& context, int call, std::optional<api::Way> way = {});

}  // namespace guest
