// Contexts. CUSTOM because a reset takes along what it does not name.
#include "host/untrusted/calls/calls.h"

namespace host::calls {

CUresult cuDevicePrimaryCtxReset_v2(asked::cuDevicePrimaryCtxReset_v2& a) {
  return a.session().reset(static_cast<unsigned>(a.record.device));
}

}  // namespace host::calls
