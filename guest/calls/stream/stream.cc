// Queries about streams that this library answers itself.
#include <algorithm>

#include "guest/calls/calls.h"
#include "guest/calls/captured.h"
#include "guest/calls/find_stream.h"
#include "guest/calls/stream_number.h"
#include "guest/calls/stub.h"
#include "guest/marshal/marshal.h"
#include "guest/process/process.h"

namespace guest {

// Returns the number of a stream. No number is ever reused, because libraries use it as a key for their workspaces.
CUresult stream_number(CUstream stream, std::uint64_t* number) {
  StreamRef ref;
  if (const CUresult r = find_stream(stream, ref); r != CUDA_SUCCESS) return r;
  if (number == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t handle = ref.object->id.load(std::memory_order_relaxed);
  if (handle != 0)
    *number = handle;
  else
    *number = ref.null_stream ? ref.context->id : reinterpret_cast<std::uint64_t>(ref.object);
  return CUDA_SUCCESS;
}

}  // namespace guest

namespace guest::calls {
namespace {

// Asks the driver whether the stream is captured. For a captured stream the driver refuses the program's query and ends
// the capture; cuStreamQuery has the same effect.
CUresult refuse_captured(CUstream stream) {
  if (!session()->graphs.captures.any()) return CUDA_SUCCESS;
  auto status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult asked = Stub<api::id_of::cuStreamIsCapturing>::call(stream, &status);
  if (asked == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE) return CUDA_SUCCESS;
  return Stub<api::id_of::cuStreamQuery>::call(stream);
}

}  // namespace

CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  StreamRef ref;
  if (const CUresult r = find_stream(stream, ref); r != CUDA_SUCCESS) return r;
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // The driver clamps the requested priority into its range.
  const ring::DeviceInfo& info = device_info(ref.context->device);
  *priority = std::max(std::min(ref.object->priority, info.least_priority), info.greatest_priority);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned* flags) {
  StreamRef ref;
  if (const CUresult r = find_stream(stream, ref); r != CUDA_SUCCESS) return r;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult r = refuse_captured(stream); r != CUDA_SUCCESS) return r;
  *flags = ref.object->flags;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  std::uint64_t number = 0;
  if (const CUresult r = stream_number(stream, id == nullptr ? nullptr : &number); r != CUDA_SUCCESS) return r;
  if (const CUresult r = refuse_captured(stream); r != CUDA_SUCCESS) return r;
  *id = number;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice* of) {
  StreamRef ref;
  if (const CUresult r = find_stream(stream, ref); r != CUDA_SUCCESS) return r;
  if (of == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *of = static_cast<CUdevice>(ref.context->device);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  StreamRef ref;
  if (const CUresult r = find_stream(stream, ref); r != CUDA_SUCCESS) return r;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = ref.context->handle;
  return CUDA_SUCCESS;
}

// The driver checks `green` before anything else.
CUresult cuStreamGetGreenCtx(CUstream stream, CUgreenCtx* green) {
  if (green == nullptr) return CUDA_ERROR_INVALID_VALUE;
  StreamRef ref;
  if (const CUresult r = find_stream(stream, ref); r != CUDA_SUCCESS) return r;
  *green = ref.context->green;
  return CUDA_SUCCESS;
}

// A stream of a green context belongs to two contexts. By cuda.h, a thread has no per-thread stream in a green context.
CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  StreamRef ref;
  if (const CUresult r = find_stream(stream, ref); r != CUDA_SUCCESS) return r;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (stream == CU_STREAM_PER_THREAD && ref.context->green != nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *context = ref.context->home->handle;
  if (green != nullptr) *green = ref.context->green;
  return CUDA_SUCCESS;
}

}  // namespace guest::calls
