// Computes how many blocks of a kernel can be resident on a multiprocessor at once.
#pragma once

#include "host/simgpu/api/module/library.h"

#include <cstddef>
#include <cstdint>

namespace simgpu {

// Returns the number of resident blocks; 0 if not even one block fits. `threads` is at least 1.
int resident_blocks(const LoadedFunction& function, std::uint64_t threads, std::size_t dynamic_shared);

}  // namespace simgpu
