// Contexts that a program creates, and the end of contexts. CUSTOM because a context's number is the guest's to choose, and
// its end takes along what it does not name.
#include <optional>

#include "host/untrusted/calls/calls.h"

namespace host::calls {

CUresult cuCtxCreate_v4(asked::cuCtxCreate_v4& a) {
  if (!a.session().may_make_another()) return CUDA_ERROR_OUT_OF_MEMORY;
  std::optional<unsigned> sm_count;
  if (a.record.affinities != 0) sm_count = a.record.sm_count;
  return a.session().create_context(a.record.number, static_cast<CUdevice>(a.record.device), a.record.flags, sm_count);
}

CUresult cuCtxDestroy_v2(asked::cuCtxDestroy_v2& a) {
  return a.session().destroy_context(static_cast<unsigned>(a.record.number));
}

CUresult cuDevicePrimaryCtxReset_v2(asked::cuDevicePrimaryCtxReset_v2& a) {
  return a.session().reset(static_cast<unsigned>(a.record.number));
}

}  // namespace host::calls
