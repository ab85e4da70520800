// cuda.h with every version of every entry point visible, so that the table can name each by its own symbol. Targets
// that use the table link ivgpu_api, which defines the macros for that.
//
// ```cpp
// using Copy = decltype(&::cuMemcpyHtoD_v2);  // and cuMemcpyHtoD, the form of CUDA 3
// ```
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "link ivgpu_api: it makes every version of cuda.h's entry points visible"
#endif
#include <cuda.h>
#include <cudaProfiler.h>
