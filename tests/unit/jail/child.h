// Checks in the children of the jail's tests; the exit code names the failed one.
#pragma once

#include <cerrno>

inline bool refused(long result, int error) { return result == -1 && errno == error; }

// Returns the failed line, folded into an exit code.
#define CHILD_EXPECT(condition)                  \
  do {                                           \
    if (!(condition)) return __LINE__ % 200 + 1; \
  } while (false)
