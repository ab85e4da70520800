// The library as a whole: its start, its version, the names of errors, and the profiler, of which there is none.
#include "guest/calls/calls.h"
#include "guest/process/process.h"
#include "ring/abi/error_text.h"

namespace guest::calls {

CUresult cuInit(unsigned flags) { return initialize(flags); }

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // The version of the API that this library serves. It is asked for before cuInit, and must never change: it is
  // hashed.
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = cuabi::error_string(error);
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = cuabi::error_name(error);
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// There is no profiler that could start or stop; the call needs a context all the same.
CUresult cuProfilerStart() {
  Context* context = nullptr;
  return enter(context);
}

CUresult cuProfilerStop() {
  Context* context = nullptr;
  return enter(context);
}

}  // namespace guest::calls
