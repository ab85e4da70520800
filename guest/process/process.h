// CUDA in this process: whether it is initialised, and its devices. Any thread may call this.
//
// Before cuInit the library opens no descriptor, starts no thread and maps nothing. After a fork each call of the child
// returns CUDA_ERROR_NOT_INITIALIZED, and never touches the parent's rings. The objects of this file are never
// destroyed, since programs call until their end.
//
// The end has two steps, as the driver's has. The exit handler that cuInit registers has each later call return
// CUDA_ERROR_DEINITIALIZED. It runs before the handlers that were registered earlier, the runtime's among them, which free
// what a launch on another thread would use. finish() gives the slot back, behind all handlers. Neither unmaps anything:
// other threads may be in a call, and use memory of the arena to their last moment.
#pragma once

#include <cstdint>

#include "guest/process/context.h"
#include "guest/session/session.h"

namespace guest {

// cuInit. CUDA_ERROR_NO_DEVICE when no region is found or it has no GPU.
CUresult initialize(unsigned flags);
// The same with a session that the caller has made, for tests. Preconditions: the session is never destroyed.
CUresult initialize_with(Session* session);

// Whether calls can be made: CUDA_SUCCESS, CUDA_ERROR_NOT_INITIALIZED (before cuInit, or in a forked child),
// CUDA_ERROR_DEINITIALIZED (the process is ending), or CUDA_ERROR_NOT_PERMITTED (in a function that a stream has called).
CUresult ready();

// The number of devices that CUDA_VISIBLE_DEVICES leaves. The guest's ordinals count these.
std::uint32_t device_count();
// The error of a question about this device: the library is not ready, or has no such device.
CUresult check_device(CUdevice device);
const ring::DeviceInfo& device_info(std::uint32_t ordinal);

// Whether each launch waits for its kernel: CUDA_LAUNCH_BLOCKING, as cuInit found it. Preconditions: ready() was
// CUDA_SUCCESS.
bool launches_block();

// Ends the session. The library's destructor calls it when the program exits.
void finish();

}  // namespace guest
