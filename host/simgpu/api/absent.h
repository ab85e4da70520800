// Entry points that always refuse; absent.cc defines them. This header does not include cuda.h.
#pragma once

namespace simgpu {

// Returns true if the function refuses every call with NOT_SUPPORTED.
bool is_absent(const void* function);

}  // namespace simgpu
