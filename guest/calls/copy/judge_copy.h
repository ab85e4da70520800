// Finds the errors of a copy before the copy is made. Calls that make several copies, or none, use these functions.
#pragma once

#include <cstddef>

#include "ring/api/cuda.h"
#include "ring/api/records.h"
#include "ring/api/texture_records.h"

namespace guest::calls {

// Returns the error that cuMemcpyAsync returns for these bytes, as far as the guest can know; else CUDA_SUCCESS.
// Preconditions: `bytes` is not 0, and a context is current.
CUresult judge_copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes);
// Returns the error that cuMemcpy3DAsync returns for the copy, as far as the guest can know; else CUDA_SUCCESS.
CUresult judge_copy(const CUDA_MEMCPY3D& copy, CUstream stream);

// Returns whether the GPU reads the source when it makes the copy. Otherwise the source is the program's own memory,
// and the guest has read it when the call returns.
bool gpu_reads(CUdeviceptr from, std::size_t bytes);

// Describes the copy for the worker, without a stream. Returns CUDA_ERROR_NOT_SUPPORTED if a side is the program's own
// memory.
CUresult describe_copy(const CUDA_MEMCPY3D& c, api::CopyTexelsRecord& record);

}  // namespace guest::calls
