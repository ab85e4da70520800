// Start and version of the library, names of errors, and the profiler calls, which have no effect.
#include "guest/calls/calls.h"
#include "guest/process/process.h"
#include "ring/abi/error_text.h"

namespace guest::calls {

CUresult cuInit(unsigned flags) { return initialize(flags); }

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // The API version that this library serves. Programs query it before cuInit and hash it, so it must never change
  // while a program runs.
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

// There is no profiler to start or stop. As in CUDA, the call needs a context.
CUresult cuProfilerStart() {
  Context* context = nullptr;
  return enter(context);
}

// cudaProfiler.h documents that every driver since CUDA 12 refuses this call.
CUresult cuProfilerInitialize(const char*, const char*, CUoutput_mode) { return CUDA_ERROR_NOT_SUPPORTED; }

CUresult cuProfilerStop() {
  Context* context = nullptr;
  return enter(context);
}

}  // namespace guest::calls
