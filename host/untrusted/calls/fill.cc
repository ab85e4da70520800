// Fills of rows. They are CUSTOM because the length of the memory is not the product of two parameters.
#include "host/untrusted/calls/calls.h"

namespace host::calls {

#define FILL_ROWS(bits, Value)                                                            \
  CUresult cuMemsetD2D##bits##_v2(asked::cuMemsetD2D##bits##_v2& a) {                     \
    const auto& f = a.record;                                                             \
    return a.call(f.at, f.pitch, static_cast<Value>(f.value), f.width, f.height);         \
  }                                                                                       \
  CUresult cuMemsetD2D##bits##Async(asked::cuMemsetD2D##bits##Async& a) {                 \
    const auto& f = a.record;                                                             \
    const auto stream = a.handle<CUstream>(&api::FillRowsRecord::stream);                 \
    return a.call(f.at, f.pitch, static_cast<Value>(f.value), f.width, f.height, stream); \
  }

FILL_ROWS(8, unsigned char)
FILL_ROWS(16, unsigned short)
FILL_ROWS(32, unsigned)

}  // namespace host::calls
