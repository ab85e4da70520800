// Attributes of streams. The calls are handwritten because cuda.h has a union for the attributes' values.
#include "guest/calls/attributes.h"
#include "guest/calls/calls.h"
#include "guest/calls/find_stream.h"

namespace guest::calls {

// Attributes that name an object, or that do not cross, are valid only for launches.
CUresult cuStreamSetAttribute(CUstream stream, CUstreamAttrID tag, const CUstreamAttrValue* value) {
  StreamRef ref;
  if (const CUresult r = find_stream(stream, ref); r != CUDA_SUCCESS) return r;
  if (value == nullptr || !api::is_streams(tag)) return CUDA_ERROR_INVALID_VALUE;
  const api::SetStreamAttributeRecord record{
      .stream = reinterpret_cast<std::uint64_t>(stream), .attributes = 0, .pad = 0};
  const Crossing crossing{.call = api::id_of::cuStreamSetAttribute, .context = *ref.context, .stream = &ref};
  const CUresult result = set_attribute(crossing, record, tag, *value);
  // The priority is stored because the guest answers cuStreamGetPriority.
  if (result == CUDA_SUCCESS && tag == CU_LAUNCH_ATTRIBUTE_PRIORITY) ref.object->priority = value->priority;
  return result;
}

CUresult cuStreamGetAttribute(CUstream stream, CUstreamAttrID tag, CUstreamAttrValue* value) {
  StreamRef ref;
  if (const CUresult r = find_stream(stream, ref); r != CUDA_SUCCESS) return r;
  if (value == nullptr || !api::is_streams(tag)) return CUDA_ERROR_INVALID_VALUE;
  const api::GetStreamAttributeRecord record{.stream = reinterpret_cast<std::uint64_t>(stream), .tag = 0, .pad = 0};
  const Crossing crossing{.call = api::id_of::cuStreamGetAttribute, .context = *ref.context, .stream = &ref};
  return get_attribute(crossing, record, tag, value);
}

}  // namespace guest::calls
