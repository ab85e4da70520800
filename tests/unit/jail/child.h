// What the children of the jail's tests check, each by its exit code.
#pragma once

#include <cerrno>

inline bool refused(long result, int error) { return result == -1 && errno == error; }

// Returns the line that failed, so that it fits into an exit code.
#define CHILD_EXPECT(condition)                  \
  do {                                           \
    if (!(condition)) return __LINE__ % 200 + 1; \
  } while (false)
