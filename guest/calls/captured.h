// Asks the driver about open captures. Calls that the guest answers itself, or sends as different calls, use these
// functions.
#pragma once

#include "ring/api/cuda.h"

namespace guest {

// Returns whether the stream belongs to a capture, even an invalidated one. Asks the worker only while a capture is
// open.
bool is_captured(CUstream stream);

// For a call that never crosses to the worker, but that the driver refuses during captures. Sends a different call that
// the driver refuses, too, so that the same captures end. Returns the driver's error, or CUDA_SUCCESS if the guest may
// serve the call.
CUresult disturb_captures();

// Waits for all work of the context except work in captured streams, for which the driver allows no wait.
struct Context;
CUresult await_context(const Context& context);

}  // namespace guest
