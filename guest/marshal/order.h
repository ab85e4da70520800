// Streams as a call names them, and what it must wait for because of them.
#pragma once

#include "guest/process/process.h"
#include "guest/process/thread.h"
#include "guest/session/order.h"

namespace guest {

// CU_STREAM_NON_BLOCKING streams do not order themselves against the NULL stream.
struct StreamRef {
  Object* object = nullptr;  // null: no such stream
  bool null_stream = false;  // the legacy one
  bool blocking = true;
  Context* context = nullptr;  // whose NULL stream counts
};

inline StreamRef resolve_stream(CUstream stream, Context& context) {
  const auto value = reinterpret_cast<std::uint64_t>(stream);
  Thread& thread = this_thread();
  if (value == 2 || (value == 0 && thread.per_thread)) return {&thread.own_stream, false, true, &context};
  if (value <= 1) return {&context.null_stream, true, true, &context};
  Object* object = session()->objects.find(stream, api::Handle::Stream);
  if (object == nullptr) return {};
  return {object, false, (object->flags & CU_STREAM_NON_BLOCKING) == 0, object->context};
}

// What a call on this stream must not overtake. Work on the NULL stream waits for all blocking streams before it, and
// they for it: so it looks at every channel, and they at the NULL stream's last use.
inline bool wait_for_stream(const StreamRef& stream, const Channel& mine) {
  if (stream.null_stream) return wait_for_all(mine);
  return wait_for_object(*stream.object, mine) &&
         (!stream.blocking || wait_for_object(stream.context->null_stream, mine));
}

}  // namespace guest
