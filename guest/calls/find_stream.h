// A stream by its handle. For calls that the guest answers by itself.
#pragma once

#include "guest/marshal/order.h"
#include "guest/process/process.h"

namespace guest {

// Finds the stream's object. Else the error that CUDA gives for such a handle.
inline CUresult find_stream(CUstream stream, StreamRef& ref) {
  Context* context = nullptr;
  if (const CUresult r = enter(context, {stream}); r != CUDA_SUCCESS) return r;
  ref = resolve_stream(stream, *context);
  return ref.object == nullptr ? no_such(stream) : CUDA_SUCCESS;
}

}  // namespace guest
