// cuda.h with every version of every entry point visible, so that the table can name each version by its own symbol.
// Targets that use the table link ivgpu_api, which defines the necessary macros.
//
// ```cpp
// using Copy = decltype(&::cuMemcpyHtoD_v2);  // cuMemcpyHtoD is the version of CUDA 3
// ```
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "link ivgpu_api: it makes every version of cuda.h's entry points visible"
#endif
#include <cuda.h>
#include <cudaProfiler.h>
