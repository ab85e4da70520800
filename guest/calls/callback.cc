// Functions of the program's that the driver calls in a stream's order. The function and its argument stay here under a token
// (guest/session/callbacks.h); the worker's driver calls the worker, and the worker has the token called.
#include "guest/calls/calls.h"
#include "guest/marshal/custom.h"
#include "guest/process/process.h"
#include "guest/session/callbacks.h"

namespace guest::calls {
namespace {

CUresult call_host_function(const Callback& callback, CUresult) {
  reinterpret_cast<CUhostFn>(callback.of_program)(callback.argument);
  return CUDA_SUCCESS;
}

CUresult call_stream_callback(const Callback& callback, CUresult status) {
  reinterpret_cast<CUstreamCallback>(callback.of_program)(callback.stream, status, callback.argument);
  return CUDA_SUCCESS;
}

// The worker takes a token that it was sent, whatever becomes of the record.
CUresult put(int call, CUstream stream, const Callback& callback) {
  if (callback.of_program == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult r = enter(context, {stream}); r != CUDA_SUCCESS) return r;
  const StreamRef ref = resolve_stream(stream, *context);
  if (ref.object == nullptr) return no_such(stream);
  const std::uint64_t token = session()->callbacks().issue(callback);
  if (token == 0) return session()->lost() ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_ERROR_OUT_OF_MEMORY;
  const api::HostFunctionRecord record{.stream = reinterpret_cast<std::uint64_t>(stream), .token = token};
  const Sent sent = cross({.call = call, .context = *context, .stream = &ref}, record);
  if (sent.use.position == 0) session()->callbacks().end(token);
  return sent.result;
}

}  // namespace

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return put(api::id_of::cuLaunchHostFunc, stream,
             {.function = call_host_function, .argument = data, .of_program = reinterpret_cast<void (*)()>(function)});
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function, void* data, unsigned flags) {
  if (flags != 0) function = nullptr;
  return put(api::id_of::cuStreamAddCallback, stream,
             {.function = call_stream_callback,
              .argument = data,
              .of_program = reinterpret_cast<void (*)()>(function),
              .stream = stream});
}

}  // namespace guest::calls
