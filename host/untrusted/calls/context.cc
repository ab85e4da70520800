// Contexts that a program creates, and the end of contexts. These calls are handwritten because the guest chooses a
// context's number, and because the session forgets its data about a context when the context ends.
#include <optional>

#include "host/untrusted/calls/calls.h"

namespace host::calls {

CUresult cuCtxCreate_v4(call_of::cuCtxCreate_v4& a) {
  const api::CreateContextRecord& wanted = a.record;
  std::optional<unsigned> sm_count;
  if (wanted.affinities != 0) sm_count = wanted.sm_count;
  return a.session().create_context(wanted.number, static_cast<CUdevice>(wanted.device), wanted.flags, sm_count);
}

CUresult cuCtxDestroy_v2(call_of::cuCtxDestroy_v2& a) {
  return a.session().destroy_context(static_cast<unsigned>(a.record.number));
}

CUresult cuDevicePrimaryCtxReset_v2(call_of::cuDevicePrimaryCtxReset_v2& a) {
  return a.session().reset(static_cast<unsigned>(a.record.number));
}

}  // namespace host::calls
