// A stream as a call of the guest's own names it.
#pragma once

#include "guest/marshal/order.h"
#include "guest/process/process.h"

namespace guest {

// The stream's object and the current device, or the error of naming it.
inline CUresult find_stream(CUstream stream, StreamRef& ref, std::uint32_t& device) {
  if (const CUresult r = enter(device); r != CUDA_SUCCESS) return r;
  ref = resolve_stream(stream, device);
  return ref.object == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

}  // namespace guest
