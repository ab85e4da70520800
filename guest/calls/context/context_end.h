// Ends a context when the program destroys it, resets it or releases it for the last time.
#pragma once

#include "guest/marshal/custom.h"

namespace guest {

// Sends the call that ends the context. The context's streams, events, modules and memory end, too; libraries and
// kernels stay, as in the driver. The green contexts of a primary context end with the primary context. `way` says
// whether the call is posted or waited, and replaces the table's choice. A context with registered memory is always
// waited for. If nothing was sent, the context stays alive. Preconditions: the context is alive.
Sent end_context(Context& context, int call, std::optional<api::Way> way = {}) REQUIRES(context.mutex);

}  // namespace guest
