// The end of a context: destroyed, reset, or let go by its last user.
#pragma once

#include "guest/marshal/custom.h"

namespace guest {

// Sends the call that ends it. Streams, events, modules and memory of the context are gone afterwards; libraries and
// kernels stay, as in the driver. `way`: another than the line's, where nobody waits for it (a program's
// end). Where nothing was sent the context
// goes on. Preconditions: its mutex is held; it lives.
Sent end_context(Context& context, int call, std::optional<api::Way> way = {});

}  // namespace guest
