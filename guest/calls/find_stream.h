// Finds a stream by its handle, for calls that the guest answers itself.
#pragma once

#include "guest/marshal/order.h"
#include "guest/process/process.h"

namespace guest {

// Finds the stream's object, or returns CUDA's error for the handle.
inline CUresult find_stream(CUstream stream, StreamRef& ref) {
  Context* context = nullptr;
  if (const CUresult r = enter(context, {stream}); r != CUDA_SUCCESS) return r;
  ref = resolve_stream(stream, *context);
  return ref.object == nullptr ? no_such(stream) : CUDA_SUCCESS;
}

}  // namespace guest
