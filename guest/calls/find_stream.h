// A stream as a call of the guest's own names it.
#pragma once

#include "guest/marshal/order.h"
#include "guest/process/process.h"

namespace guest {

// The stream's object, or the error of naming it.
inline CUresult find_stream(CUstream stream, StreamRef& ref) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  ref = resolve_stream(stream, *context);
  return ref.object == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

}  // namespace guest
