// The end of a primary context, for cuDevicePrimaryCtxReset and the last release.
#pragma once

#include <cstdint>

#include "guest/marshal/exchange.h"

namespace guest {

// Streams, events, modules and memory of the device are gone afterwards; libraries and kernels stay, as in the driver.
// Posted where nobody waits for it (a program's end). Where nothing was sent the context goes on.
Sent reset_primary(std::uint32_t device, api::Way way);

}  // namespace guest
