// Finds functions and kernels by their handles, for calls that the guest answers itself.
#pragma once

#include "guest/process/process.h"

namespace guest {

inline CUresult find_function(const void* handle, api::Handle kind, Object*& object) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  object = session()->objects.find(handle, kind);
  return object == nullptr || object->function == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

inline CUresult param_info(const FunctionInfo& info, std::size_t index, std::size_t* offset, std::size_t* bytes) {
  if (offset == nullptr || index >= info.params.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = info.params[index].offset;
  if (bytes != nullptr) *bytes = info.params[index].size;
  return CUDA_SUCCESS;
}

}  // namespace guest
