// Finds the handler that serves a call.
#pragma once

#include <cstdint>

#include "host/untrusted/marshal/request.h"

namespace host {

// Null if the number is not that of a call.
Handler handler_of(std::uint16_t call);

}  // namespace host
