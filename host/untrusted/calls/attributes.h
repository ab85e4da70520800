// Attributes of streams and of kernel nodes. The table of launch attributes describes the values, since cuda.h uses one
// union for all of these attributes.
#pragma once

#include <cstring>

#include "host/untrusted/marshal/decoded_request.h"

namespace host::calls {

// Answers a query for an attribute. `a`: the call. The driver writes into a zeroed union, and the reply gets as many
// bytes as the attribute uses. Attributes outside the table are refused, since their values may contain a handle of the
// driver.
template <class A, class Handle>
CUresult get_attribute(A& a, Handle handle) {
  const auto tag = static_cast<int>(a.record.tag);
  api::StreamAttributeReply reply{};
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  if (!api::is_streams(static_cast<CUlaunchAttributeID>(tag))) return a.answer(result, reply);
  api::with_attribute<api::LaunchAttributes>(tag, [&](const auto& line) {
    CUlaunchAttributeValue value{};
    result = a.call(handle, line.tag, &value);
    std::memcpy(reply.value, &value, line.bytes);
  });
  return a.answer(result, reply);
}

}  // namespace host::calls
