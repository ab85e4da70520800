// Green contexts and the splitting of resources. These calls are handwritten because the guest chooses a context's
// number, and because the number of groups is both input and output.
#include <algorithm>
#include <vector>

#include "host/untrusted/calls/calls.h"
#include "host/untrusted/marshal/resources.h"

namespace host::calls {

CUresult cuGreenCtxCreate(call_of::cuGreenCtxCreate& a) {
  const api::CreateGreenContextRecord& wanted = a.record;
  return a.session().create_green_context(wanted.number, static_cast<CUdevice>(wanted.device),
                                          a.handle<CUdevResourceDesc>(&api::CreateGreenContextRecord::description),
                                          wanted.flags);
}

CUresult cuGreenCtxDestroy(call_of::cuGreenCtxDestroy& a) {
  return a.session().destroy_context(static_cast<unsigned>(a.record.number));
}

CUresult cuDevSmResourceSplitByCount(call_of::cuDevSmResourceSplitByCount& a) {
  using Record = api::SplitResourceRecord;
  const bool wants_groups = (a.record.wants & Record::wants_groups) != 0;
  const bool wants_rest = (a.record.wants & Record::wants_rest) != 0;
  CUdevResource nothing;
  std::memset(&nothing, 0, sizeof nothing);
  std::vector<CUdevResource> parts(a.record.groups + 1, nothing);  // at least one element, so that data() is valid
  CUdevResource rest = nothing;
  unsigned groups = a.record.groups;
  const CUresult result = a.call(wants_groups ? parts.data() : nullptr, &groups,
                                 static_cast<const CUdevResource*>(a.handle<void*>(&Record::input)),
                                 wants_rest ? &rest : nullptr, a.record.flags, a.record.least);
  if (result != CUDA_SUCCESS) return result;
  parts.resize(wants_groups ? std::min(groups, a.record.groups) : 0);
  if (wants_rest) parts.push_back(rest);
  for (CUdevResource& part : parts)
    if (const CUresult refused = to_guest(a.session(), part); refused != CUDA_SUCCESS) return refused;
  return a.answer(result, {.groups = groups, .resources = 0}, parts);
}

}  // namespace host::calls
