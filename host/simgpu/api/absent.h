// Entry points that only refuse: absent.cc. This page brings no declaration of cuda.h.
#pragma once

namespace simgpu {

// True of a function that answers NOT_SUPPORTED for a call that is not served.
bool is_absent(const void* function);

}  // namespace simgpu
