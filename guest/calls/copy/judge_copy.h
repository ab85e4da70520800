// What is wrong with a copy, found before any of it is made: for calls that make several copies, or none.
#pragma once

#include <cstddef>

#include "ring/api/cuda.h"
#include "ring/api/records.h"
#include "ring/api/texture_records.h"

namespace guest::calls {

// The error of cuMemcpyAsync of these bytes, as far as the guest knows it; CUDA_SUCCESS if it knows of none.
// Preconditions: `bytes` is not 0, and a context is current.
CUresult judge_copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes);
// The same for cuMemcpy3DAsync.
CUresult judge_copy(const CUDA_MEMCPY3D& copy, CUstream stream);

// Whether the GPU reads from there. Else the bytes are the program's own, and a copy has read them when its call returns.
bool gpu_reads(CUdeviceptr from, std::size_t bytes);

// The same copy as the worker takes it, without a stream. Memory of the program's own is CUDA_ERROR_NOT_SUPPORTED.
CUresult describe_copy(const CUDA_MEMCPY3D& c, api::CopyTexelsRecord& record);

}  // namespace guest::calls
