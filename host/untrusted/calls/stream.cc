// Attributes of streams.
#include "host/untrusted/calls/attributes.h"
#include "host/untrusted/calls/calls.h"

namespace host::calls {

CUresult cuStreamGetAttribute(call_of::cuStreamGetAttribute& a) {
  return get_attribute(a, a.handle<CUstream>(&api::GetStreamAttributeRecord::stream));
}

}  // namespace host::calls
