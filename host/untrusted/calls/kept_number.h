// Stores handles that cuda.h declares as unsigned long long in the session's table of pointers.
#pragma once

#include <cstdint>

namespace host::calls {

// Returns the driver's number plus 1 as a pointer, so that the pointer is never null.
inline void* keep_number(unsigned long long object) { return reinterpret_cast<void*>(object + 1); }
inline unsigned long long kept_number(const void* kept) { return reinterpret_cast<std::uint64_t>(kept) - 1; }

}  // namespace host::calls
