// Attributes of streams. A value is read by its line among the launch attributes, since both have one union in cuda.h.
#include <cstring>

#include "host/untrusted/calls/calls.h"

namespace host::calls {

CUresult cuStreamSetAttribute(asked::cuStreamSetAttribute& a) {
  const CUlaunchAttribute& attribute = *a.attributes();
  if (!api::is_streams(attribute.id)) return a.request.broken();
  return a.call(a.handle<CUstream>(&api::SetStreamAttributeRecord::stream), attribute.id, &attribute.value);
}

// The driver writes into a union of zeros, of which the reply has as much as the attribute uses. One that does not cross
// may hold a handle of the driver's.
CUresult cuStreamGetAttribute(asked::cuStreamGetAttribute& a) {
  const auto tag = static_cast<int>(a.record.tag);
  api::StreamAttributeReply reply{};
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  if (!api::is_streams(static_cast<CUlaunchAttributeID>(tag))) return a.answer(result, reply);
  api::with_attribute<api::LaunchAttributes>(tag, [&](const auto& line) {
    CUlaunchAttributeValue value{};
    result = a.call(a.handle<CUstream>(&api::GetStreamAttributeRecord::stream), line.tag, &value);
    std::memcpy(reply.value, &value, line.bytes);
  });
  return a.answer(result, reply);
}

}  // namespace host::calls
