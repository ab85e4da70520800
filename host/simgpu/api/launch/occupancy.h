// The number of blocks of a kernel that fit on a multiprocessor at once.
#pragma once

#include "host/simgpu/api/module/library.h"

#include <cstddef>
#include <cstdint>

namespace simgpu {

// 0 when not even one does. `threads` is at least 1.
int resident_blocks(const LoadedFunction& function, std::uint64_t threads, std::size_t dynamic_shared);

}  // namespace simgpu
