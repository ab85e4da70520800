// From a record's number to what serves it.
#pragma once

#include <cstdint>

#include "host/untrusted/request.h"

namespace host {

// Null for a number that is no call's.
Handler handler_of(std::uint16_t call);

}  // namespace host
