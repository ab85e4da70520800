// The text that kernels have printed. The guest fetches the text from the worker and writes it to the program's stdout
// through stdio, in order with the program's own lines. The simulated GPU's error reports arrive with the text. The
// guest writes these reports into the log.
#pragma once

#include "guest/session/session.h"

namespace guest {

inline bool output_waiting() {
  const Session* s = session();
  return s != nullptr && s->output_waiting();
}

// Fetches and writes all text that the worker has for the guest. Preconditions: the caller holds no channel's lock.
void print_output();

}  // namespace guest
