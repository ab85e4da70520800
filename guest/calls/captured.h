// Asks the driver about open captures, for calls that the guest serves itself or in its own way.
#pragma once

#include "ring/api/cuda.h"

namespace guest {

// Whether the stream belongs to a capture, invalidated ones included. Asks the worker only while a capture is open.
bool is_captured(CUstream stream);

// For a call that does not cross and that the driver refuses during captures. Sends another such call in its place,
// which ends the same captures. Returns the driver's error; CUDA_SUCCESS: the call may be served.
CUresult disturb_captures();

// Waits for all work of the context except captured streams, for which no wait is allowed.
struct Context;
CUresult await_context(const Context& context);

}  // namespace guest
