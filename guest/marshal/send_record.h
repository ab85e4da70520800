// How a CUSTOM call sends its record: the struct, then what follows it.
#pragma once

#include <span>

#include "guest/marshal/marshal.h"
#include "ring/api/call.h"

namespace guest {

struct Part {
  const void* at = nullptr;
  std::size_t bytes = 0;
};

// Sends `record` and the parts after it, each padded to 8, as the call with this id. Waited: `on_reply(CUresult,
// SharedReader&)` sees the reply while the channel's lock is held, failed or not. The caller has waited for the order
// the table's line asks for.
template <class Record, class OnReply>
Sent send_record(int call, api::Way way, Context& context, const Record& record, std::span<const Part> parts,
                 OnReply on_reply, Earlier earlier_error = Earlier::Left) {
  std::size_t payload = ring::padded(sizeof record);
  for (const Part& part : parts) payload += part.bytes > ring::max_record ? ring::max_record : ring::padded(part.bytes);
  const auto write = [&](ring::Writer& w) {
    w.bytes(&record, sizeof record);
    for (const Part& part : parts) w.bytes(part.at, part.bytes);
  };
  return send(this_channel(), sending(call, way, context, payload, earlier_error), write, on_reply);
}

template <class Record>
Sent send_record(int call, api::Way way, Context& context, const Record& record, std::span<const Part> parts = {},
                 Earlier earlier_error = Earlier::Left) {
  return send_record(call, way, context, record, parts, read_nothing, earlier_error);
}

}  // namespace guest
