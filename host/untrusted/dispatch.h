// Finds the handler that serves a call.
#pragma once

#include <cstdint>

#include "host/untrusted/marshal/request.h"

namespace host {

// Returns the handler of a call, or null if no call has this number.
Handler handler_of(std::uint16_t call);

}  // namespace host
