// A call that may make its stream wait for a value in memory: events before and behind it, so that whoever waits for the
// session's work knows where the stream stands (host/session/value_waits.h).
#pragma once

#include <optional>

#include "host/untrusted/request.h"
#include "ring/api/id.h"

namespace host {

// The stream that the record names. Nothing: the session has none of that id, and the handler refuses it.
inline std::optional<CUstream> stream_of(const Request& r) {
  const std::uint64_t id = r.stream();
  if (id == 0) return r.per_thread() ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  if (api::special_stream(id)) return api::from_number<CUstream>(id);
  void* const handle = r.session.objects.find(id, api::Handle::Stream);
  return handle == nullptr ? std::nullopt : std::optional(static_cast<CUstream>(handle));
}

// `call()` makes the call.
template <class Call>
CUresult call_marked(Request& r, std::uint32_t channel, const Call& call) {
  const std::optional<CUstream> stream = stream_of(r);
  if (!stream) return call();
  const ValueWaits::Mark mark(r.session.value_waits, r.working_context(), channel, *stream);
  return call();
}

}  // namespace host
