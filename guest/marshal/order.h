// The stream that a call names, and the calls for which a call on that stream must wait.
#pragma once

#include "guest/process/process.h"
#include "guest/process/thread.h"
#include "guest/session/order.h"

namespace guest {

// A stream. `blocking`: the stream is ordered against the NULL stream, as streams without CU_STREAM_NON_BLOCKING are.
struct StreamRef {
  Object* object = nullptr;  // null: no such stream
  bool null_stream = false;  // the legacy NULL stream
  bool blocking = true;
  Context* context = nullptr;  // a context's NULL stream orders the context's blocking streams
};

inline StreamRef resolve_stream(CUstream stream, Context& context) {
  const auto value = reinterpret_cast<std::uint64_t>(stream);
  Thread& thread = this_thread();
  if (value == 2 || (value == 0 && thread.per_thread)) return {&thread.own_stream(context), false, true, &context};
  if (value <= 1) return {&context.null_stream, true, true, &context};
  Object* object = session()->objects.find(stream, api::Handle::Stream);
  if (object == nullptr) return {};
  return {object, false, (object->flags & CU_STREAM_NON_BLOCKING) == 0, object->context};
}

// Returns CUDA's error for a handle of a stream or event that has ended or never existed. The error depends on whether
// the object ended with its context.
inline CUresult no_such(const void* handle) {
  return session()->objects.went_with_context(handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_HANDLE;
}

// Returns whether a call must not overtake any posted call. True if the call's line says so, or if the call names no
// stream while captures are open. Launches into captures are posted, and change graphs that they do not name.
inline bool follows_all(api::Order order, bool on_stream) {
  return order == api::Order::All || (!on_stream && session()->graphs.captures.any());
}

// Waits for the calls that a call on this stream must not overtake. Work on the NULL stream waits for all blocking
// streams, so the guest waits for every channel. Work on a blocking stream waits for the NULL stream, so the guest
// waits for the NULL stream's last use. Returns false if the session is lost or suspended.
inline bool wait_for_stream(const StreamRef& stream, const Channel& mine) {
  if (stream.null_stream) return wait_for_all(mine);
  return wait_for_object(*stream.object, mine) &&
         (!stream.blocking || wait_for_object(stream.context->null_stream, mine));
}

}  // namespace guest
