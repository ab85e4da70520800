// The state of CUDA in this process: whether CUDA is initialised, and the devices. Any thread may call these functions.
//
// Before cuInit the library opens no descriptor, starts no thread and maps nothing. After a fork each call of the child
// returns CUDA_ERROR_NOT_INITIALIZED and leaves the parent's rings alone. The objects of this file are never destroyed,
// since programs make calls until they end.
//
// The end has two steps, as in the driver. First an exit handler, which cuInit has registered, makes each later call
// return CUDA_ERROR_DEINITIALIZED. This handler runs before the handlers registered earlier, the CUDA runtime's
// included, which free memory that a launch on another thread would use. Then finish() gives the slot back, after all
// handlers. Neither step unmaps anything, because other threads may still be in a call.
#pragma once

#include <atomic>
#include <cstdint>

#include "guest/process/context.h"
#include "guest/session/session.h"

namespace guest {

// Implements cuInit. Returns CUDA_ERROR_NO_DEVICE if no region is found, or if the region has no GPU.
CUresult initialize(unsigned flags);
// Like initialize(), with a session that the caller has made, for tests. The session must never be destroyed.
CUresult initialize_with(Session* session);

enum class Phase : std::uint8_t { Fresh, Ready, Forked, Ended };
extern std::atomic<Phase> phase;  // only for ready() and process.cc
CUresult why_not_ready();
// Returns whether calls can be made: CUDA_SUCCESS, CUDA_ERROR_NOT_INITIALIZED (before cuInit, or in a forked child),
// CUDA_ERROR_DEINITIALIZED (the process is ending), or CUDA_ERROR_NOT_PERMITTED (in a function that a stream calls).
inline CUresult ready() {
  const bool is_ready = phase.load(std::memory_order_acquire) == Phase::Ready && !Callbacks::is_inside();
  return is_ready ? CUDA_SUCCESS : why_not_ready();
}

// Returns the number of devices that CUDA_VISIBLE_DEVICES allows. The guest's ordinals count these devices.
std::uint32_t device_count();
// Returns the error of a query about this device: the library is not ready, or no device has that ordinal.
CUresult check_device(CUdevice device);
const ring::DeviceInfo& device_info(std::uint32_t ordinal);

// Returns whether each launch waits for its kernel, by the value of CUDA_LAUNCH_BLOCKING at the time of cuInit.
// Preconditions: ready() was CUDA_SUCCESS.
extern bool blocking_launches;  // only for launches_block() and process.cc
inline bool launches_block() { return blocking_launches; }

// Ends the session. The library's destructor calls finish() when the program exits.
void finish();

}  // namespace guest
