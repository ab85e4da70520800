// Included before anything of the project, and after every header of the standard library that it needs: from here on
// the project's headers get the explorer's atomics (tests/models/explore.h). Only in programs all of whose files begin
// so; and only for headers, whose text is the shipping one.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/models/explore.h"

namespace std {
template <class T>
using explored_atomic = explore::Atomic<T>;
inline void explored_fence(memory_order order, explore::Site site = explore::Site::current()) {
  explore::fence(order, site);
}
inline void* explored_copy(void* to, const void* from, size_t bytes) { return explore::copy(to, from, bytes); }
}  // namespace std

#define atomic explored_atomic
#define atomic_thread_fence explored_fence
#define memcpy explored_copy
