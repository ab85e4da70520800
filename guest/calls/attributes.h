// Attributes of streams and kernel nodes. cuda.h declares one union for the values of both kinds. The values cross as
// the table of launch attributes describes (ring/api/launch_attributes.h).
#pragma once

#include <cstring>

#include "guest/calls/launch_config.h"
#include "guest/marshal/custom.h"
#include "ring/api/records.h"

namespace guest::calls {

// Sets the attribute `tag` of the object that `record` names. Preconditions: api::is_streams(tag).
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

// Reads the attribute `tag` of the object that `record` names. Writes only the members of `value` that the attribute
// uses.
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
