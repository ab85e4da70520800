// What kernels have printed: fetched from the worker and written to the program's own stdout, through stdio, so that it
// stands in order with the program's own lines. What the simulated GPU says of an error comes with it, and goes into
// the log.
#pragma once

#include "guest/session/session.h"

namespace guest {

inline bool output_waiting() {
  const Session* s = session();
  return s != nullptr && s->output_waiting();
}

// Fetches and writes all there is. Preconditions: no channel's lock is held.
void print_output();

}  // namespace guest
