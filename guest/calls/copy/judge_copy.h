// Finds a copy's errors before it is made: for calls that make several copies, or none.
#pragma once

#include <cstddef>

#include "ring/api/cuda.h"
#include "ring/api/records.h"
#include "ring/api/texture_records.h"

namespace guest::calls {

// The error of cuMemcpyAsync for these bytes, as far as the guest can tell; else CUDA_SUCCESS. Preconditions: `bytes`
// is not 0, and a context is current.
CUresult judge_copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes);
// The same for cuMemcpy3DAsync.
CUresult judge_copy(const CUDA_MEMCPY3D& copy, CUstream stream);

// Whether the GPU reads from there. Else the bytes are the program's own, and are read when the copy's call returns.
bool gpu_reads(CUdeviceptr from, std::size_t bytes);

// Describes the copy for the worker, without a stream. CUDA_ERROR_NOT_SUPPORTED: a side is the program's own memory.
CUresult describe_copy(const CUDA_MEMCPY3D& c, api::CopyTexelsRecord& record);

}  // namespace guest::calls
