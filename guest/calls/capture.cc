// Capture of streams. A program cannot begin one yet.
#include <utility>

#include "guest/calls/calls.h"
#include "guest/calls/find_stream.h"

namespace guest::calls {

// No capture can begin, so none is under way.
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  StreamRef ref;
  if (const CUresult r = find_stream(stream, ref); r != CUDA_SUCCESS) return r;
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

// What else a form asks for has no meaning without a capture.
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t*) {
  return calls::cuStreamIsCapturing(stream, status);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t*, CUgraph*,
                                   const CUgraphNode**, std::size_t*) {
  return calls::cuStreamIsCapturing(stream, status);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t*, CUgraph*,
                                   const CUgraphNode**, const CUgraphEdgeData**, std::size_t*) {
  return calls::cuStreamIsCapturing(stream, status);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;  // the driver takes any number
  std::swap(*mode, current);
  return CUDA_SUCCESS;
}

}  // namespace guest::calls
