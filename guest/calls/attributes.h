// Attributes of streams and kernel nodes. One union in cuda.h has the values of both; they cross by the lines of the
// launch attributes (ring/api/launch_attributes.h).
#pragma once

#include <cstring>

#include "guest/calls/launch_config.h"
#include "guest/marshal/custom.h"
#include "ring/api/records.h"

namespace guest::calls {

// `record` names the object. Preconditions: api::is_streams(tag).
template <class Record>
CUresult set_attribute(const Crossing& c, Record record, CUlaunchAttributeID tag, const CUlaunchAttributeValue& value) {
  CUlaunchAttribute given{};
  given.id = tag;
  given.value = value;
  const CUlaunchAttribute sent = described(given);
  record.attributes = 1;
  const Part attribute{&sent, sizeof sent};
  return cross(c, record, {&attribute, 1}).result;
}

// The same for reading. Writes only the members of `value` that the attribute uses.
template <class Record>
CUresult get_attribute(const Crossing& c, Record record, CUlaunchAttributeID tag, CUlaunchAttributeValue* value) {
  record.tag = static_cast<std::uint32_t>(tag);
  const auto take = [&](CUresult result, ring::SharedReader& reply) {
    if (result != CUDA_SUCCESS) return;
    const auto answered = reply.read<api::StreamAttributeReply>();
    api::with_attribute<api::LaunchAttributes>(
        tag, [&](const auto& line) { std::memcpy(static_cast<void*>(value), answered.value, line.bytes); });
  };
  return cross(c, record, {}, take).result;
}

}  // namespace guest::calls
