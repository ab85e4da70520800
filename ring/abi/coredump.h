// Settings of GPU core dumps.
//
// No library of this tree writes a core dump: the host may not write files for a guest, and the simulated GPU has
// nothing to dump. The settings are stored and reported. A request for dumps is refused, so that no program waits for a
// file that is never written.
//
// One set of settings serves the process and all its contexts. Any thread may call these functions. The errors are the
// driver's.
//
// ```cpp
// CUresult ask_for_dumps() {
//   const bool on = true;
//   const std::size_t size = sizeof on;
//   return cuabi::coredump_set(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &size);  // CUDA_ERROR_NOT_SUPPORTED
// }
// ```
#pragma once

#include <cuda.h>

#include <cstddef>

namespace cuabi {

CUresult coredump_get(CUcoredumpSettings which, void* value, std::size_t* size);
CUresult coredump_set(CUcoredumpSettings which, const void* value, const std::size_t* size);
// Like coredump_set(), for a context. Refuses settings that must be made before a context exists.
CUresult coredump_set_of_context(CUcoredumpSettings which, const void* value, const std::size_t* size);

}  // namespace cuabi
