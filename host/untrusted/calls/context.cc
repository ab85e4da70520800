// Contexts. CUSTOM because a reset takes along what it does not name.
#include "host/untrusted/calls/calls.h"
#include "ring/api/records.h"

namespace host::calls {

CUresult cuDevicePrimaryCtxReset_v2(Request& r) {
  const auto record = r.in.read<api::ResetRecord>();
  if (!r.complete() || record.device >= ring::max_devices) return r.broken();
  return r.session.reset(static_cast<unsigned>(record.device));
}

}  // namespace host::calls
