// The text that kernels have printed. The guest fetches it from the worker and writes it to the program's stdout,
// through stdio, so that it stands in order with the program's own lines. The simulated GPU's report of an error comes
// with it, and goes into the log.
#pragma once

#include "guest/session/session.h"

namespace guest {

inline bool output_waiting() {
  const Session* s = session();
  return s != nullptr && s->output_waiting();
}

// Fetches and writes all waiting text. Preconditions: no channel's lock is held.
void print_output();

}  // namespace guest
