// Attributes of streams. They are CUSTOM because cuda.h has a union for their values, which crosses by the lines of the
// launch attributes (ring/api/launch_attributes.h).
#include <cstring>

#include "guest/calls/calls.h"
#include "guest/calls/find_stream.h"
#include "guest/calls/launch_config.h"
#include "guest/marshal/custom.h"
#include "ring/api/records.h"

namespace guest::calls {

// What names an object, or does not cross, is for launches alone.
CUresult cuStreamSetAttribute(CUstream stream, CUstreamAttrID tag, const CUstreamAttrValue* value) {
  StreamRef ref;
  if (const CUresult r = find_stream(stream, ref); r != CUDA_SUCCESS) return r;
  if (value == nullptr || !api::is_streams(tag)) return CUDA_ERROR_INVALID_VALUE;
  CUlaunchAttribute given{};
  given.id = tag;
  given.value = *value;
  const CUlaunchAttribute sent = described(given);
  const api::SetStreamAttributeRecord record{
      .stream = reinterpret_cast<std::uint64_t>(stream), .attributes = 1, .pad = 0};
  const Part attribute{&sent, sizeof sent};
  const CUresult result = cross({.call = api::id_of::cuStreamSetAttribute, .context = *ref.context, .stream = &ref},
                                record, {&attribute, 1})
                              .result;
  // cuStreamGetPriority is answered here.
  if (result == CUDA_SUCCESS && tag == CU_LAUNCH_ATTRIBUTE_PRIORITY) ref.object->priority = value->priority;
  return result;
}

CUresult cuStreamGetAttribute(CUstream stream, CUstreamAttrID tag, CUstreamAttrValue* value) {
  StreamRef ref;
  if (const CUresult r = find_stream(stream, ref); r != CUDA_SUCCESS) return r;
  if (value == nullptr || !api::is_streams(tag)) return CUDA_ERROR_INVALID_VALUE;
  const api::GetStreamAttributeRecord record{
      .stream = reinterpret_cast<std::uint64_t>(stream), .tag = static_cast<std::uint32_t>(tag), .pad = 0};
  const auto take = [&](CUresult result, ring::SharedReader& reply) {
    if (result != CUDA_SUCCESS) return;
    const auto given = reply.read<api::StreamAttributeReply>();
    CUlaunchAttribute told{};
    std::memcpy(&told.value, given.value, sizeof told.value);
    api::with_attribute<api::LaunchAttributes>(
        tag, [&](const auto& line) { std::memcpy(static_cast<void*>(value), &told.value, line.bytes); });
  };
  return cross({.call = api::id_of::cuStreamGetAttribute, .context = *ref.context, .stream = &ref}, record, {}, take)
      .result;
}

}  // namespace guest::calls
