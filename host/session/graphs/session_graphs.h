// The captures that a session has begun, and the conditional handles of its graphs.
#pragma once

#include "host/session/graphs/captures.h"
#include "host/session/graphs/conditionals.h"

namespace host {

struct SessionGraphs {
  Captures captures;
  Conditionals conditionals;
};

}  // namespace host
