// What a call that the guest serves by itself, or in a way of its own, asks of the driver while captures are open.
#pragma once

#include "ring/api/cuda.h"

namespace guest {

// Whether the stream belongs to a capture, invalidated ones included. One trip while a capture is open, else none.
bool is_captured(CUstream stream);

// For a call that the driver refuses while captures are open and that does not cross: the driver refuses another such call in
// its place, and ends the captures that it would. Returns the driver's error; CUDA_SUCCESS: the call may be served.
CUresult disturb_captures();

// Waits for all work of the context but that of captured streams, which may neither be waited for nor make the wait fail.
struct Context;
CUresult await_context(const Context& context);

}  // namespace guest
