// The state of CUDA in this process: whether it is initialised, and its devices. Any thread may call this.
//
// Before cuInit the library opens no descriptor, starts no thread and maps nothing. After a fork each call of the child
// returns CUDA_ERROR_NOT_INITIALIZED and leaves the parent's rings alone. The objects of this file are never destroyed,
// since programs call until their end.
//
// The end has two steps, as the driver's has. First the exit handler of cuInit makes each later call return
// CUDA_ERROR_DEINITIALIZED. It runs before the handlers registered earlier, the runtime's included, which free memory
// that a launch on another thread would use. Then finish() gives the slot back, after all handlers. Neither step unmaps
// anything: other threads may still be in a call.
#pragma once

#include <cstdint>

#include "guest/process/context.h"
#include "guest/session/session.h"

namespace guest {

// cuInit. CUDA_ERROR_NO_DEVICE when no region is found or it has no GPU.
CUresult initialize(unsigned flags);
// The same with a session that the caller has made, for tests. The session must never be destroyed.
CUresult initialize_with(Session* session);

// Whether calls can be made: CUDA_SUCCESS, CUDA_ERROR_NOT_INITIALIZED (before cuInit, or in a forked child),
// CUDA_ERROR_DEINITIALIZED (the process is ending), or CUDA_ERROR_NOT_PERMITTED (in a function that a stream calls).
CUresult ready();

// The number of devices that CUDA_VISIBLE_DEVICES leaves. The guest's ordinals count these.
std::uint32_t device_count();
// The error of a query about this device: the library is not ready, or there is no device of that ordinal.
CUresult check_device(CUdevice device);
const ring::DeviceInfo& device_info(std::uint32_t ordinal);

// Whether each launch waits for its kernel: CUDA_LAUNCH_BLOCKING at the time of cuInit. Preconditions: ready() was
// CUDA_SUCCESS.
bool launches_block();

// Ends the session. The library's destructor calls it when the program exits.
void finish();

}  // namespace guest
