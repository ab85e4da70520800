// Checks in the children of the jail's tests. A child's exit code says which check failed.
#pragma once

#include <cerrno>

inline bool refused(long result, int error) { return result == -1 && errno == error; }

// Returns the number of the failed line as an exit code.
#define CHILD_EXPECT(condition)                  \
  do {                                           \
    if (!(condition)) return __LINE__ % 200 + 1; \
  } while (false)
