// Settings of GPU core dumps. No library of this tree writes such a dump: the host may not write files for a guest, and the
// simulated GPU has nothing to dump. So the settings are kept and told, and a program that asks for dumps is refused, and
// does not wait for a file that never comes.
//
// One set for the process, contexts included: they differ in nothing that can be set.
#pragma once

#include <cuda.h>

#include <cstddef>

namespace cuabi {

CUresult coredump_get(CUcoredumpSettings which, void* value, std::size_t* size);
CUresult coredump_set(CUcoredumpSettings which, const void* value, const std::size_t* size);
// The same for a context: what must be set before there is one is refused.
CUresult coredump_set_of_context(CUcoredumpSettings which, const void* value, const std::size_t* size);

}  // namespace cuabi
