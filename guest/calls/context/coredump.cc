// Core dump settings, which this library only stores: a worker writes no file for a guest (ring/abi/coredump.h).
#include "ring/abi/coredump.h"

#include "guest/calls/calls.h"
#include "guest/process/context.h"

namespace guest::calls {

// The driver, too, checks `size` for NULL before anything else.
CUresult cuCoredumpGetAttribute(CUcoredumpSettings which, void* value, std::size_t* size) {
  if (size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  return cuabi::coredump_get(which, value, size);
}

CUresult cuCoredumpSetAttribute(CUcoredumpSettings which, void* value, std::size_t* size) {
  if (size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  return cuabi::coredump_set_of_context(which, value, size);
}

CUresult cuCoredumpGetAttributeGlobal(CUcoredumpSettings which, void* value, std::size_t* size) {
  return cuabi::coredump_get(which, value, size);
}

CUresult cuCoredumpSetAttributeGlobal(CUcoredumpSettings which, void* value, std::size_t* size) {
  return cuabi::coredump_set(which, value, size);
}

}  // namespace guest::calls
