// Functions of the program that the driver calls when a stream reaches them. The guest stores function and argument
// under a token (guest/session/callbacks.h). The driver calls the worker, and the worker makes the guest call the
// function.
#include "guest/calls/calls.h"
#include "guest/calls/captured.h"
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

// Once the token is sent, the worker owns the token, whatever happens to the record.
CUresult put(int call, CUstream stream, const Callback& callback) {
  if (callback.of_program == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult r = enter(context, {stream}); r != CUDA_SUCCESS) return r;
  const StreamRef ref = resolve_stream(stream, *context);
  if (ref.object == nullptr) return no_such(stream);
  const std::uint64_t token = session()->callbacks().issue(callback);
  if (token == 0) return session()->liveness().lost() ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_ERROR_OUT_OF_MEMORY;
  const api::HostFunctionRecord record{.stream = reinterpret_cast<std::uint64_t>(stream), .token = token};
  const Sent sent = cross({.call = call, .context = *context, .stream = &ref}, record);
  if (sent.use.position == 0) session()->callbacks().end(token);
  return sent.result;
}

// The driver has released its user object, so the guest's object ends, too.
CUresult call_destructor(const Callback& callback, CUresult) {
  Objects& objects = session()->objects;
  if (Object* const object = objects.find(reinterpret_cast<const void*>(callback.object), api::Handle::UserObject))
    objects.retire(*object, {});
  reinterpret_cast<CUhostFn>(callback.of_program)(callback.argument);
  return CUDA_SUCCESS;
}

}  // namespace

// For a captured stream, the executable graphs made from the capture call the function until they end.
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;  // the driver returns this even before cuInit
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  return put(api::id_of::cuLaunchHostFunc, stream,
             {.function = call_host_function,
              .argument = data,
              .life = is_captured(stream) ? Callback::Life::UntilEnded : Callback::Life::Once,
              .of_program = reinterpret_cast<void (*)()>(function)});
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function, void* data, unsigned flags) {
  if (flags != 0) function = nullptr;
  return put(api::id_of::cuStreamAddCallback, stream,
             {.function = call_stream_callback,
              .argument = data,
              .of_program = reinterpret_cast<void (*)()>(function),
              .stream = stream});
}

CUresult cuUserObjectCreate(CUuserObject* out, void* argument, CUhostFn destroy, unsigned references, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult r = enter_without_context(context); r != CUDA_SUCCESS) return r;
  if (out == nullptr || destroy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Session& s = *session();
  Object* const object = s.objects.create(api::Handle::UserObject, nullptr);
  if (object == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t id = object->id.load(std::memory_order_relaxed);
  const std::uint64_t token = s.callbacks().issue({.function = call_destructor,
                                                   .argument = argument,
                                                   .of_program = reinterpret_cast<void (*)()>(destroy),
                                                   .object = id});
  const api::UserObjectRecord record{.object = id, .token = token, .references = references, .flags = flags};
  const Sent sent = token == 0 ? Sent{CUDA_ERROR_OUT_OF_MEMORY, {}}
                               : cross({.call = api::id_of::cuUserObjectCreate, .context = *context}, record);
  if (sent.result == CUDA_SUCCESS) {
    *out = reinterpret_cast<CUuserObject>(id);
  } else if (!sent.unanswered) {
    s.objects.retire(*object, {});
    if (token != 0) s.callbacks().end(token);
  }
  return sent.result;
}

}  // namespace guest::calls
