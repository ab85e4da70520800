// This process: whether CUDA is initialised in it, its devices, its primary contexts.
//
// Nothing happens before cuInit: no descriptor, no thread, no mapping. After fork the child is told NOT_INITIALIZED by
// everything; it never touches the parent's rings. Nothing is ever destroyed.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "guest/session/session.h"

namespace guest {

struct PrimaryContext {
  std::uint64_t handle = 0;  // an id, stable for the process's lifetime
  std::uint32_t host_device = 0;
  std::atomic<std::uint32_t> retained{0};
  std::uint32_t flags = 0;
  std::mutex mutex;  // of retain, release and reset
};

// cuInit. CUDA_ERROR_NO_DEVICE when no region is found or it has no GPU.
CUresult initialize(unsigned flags);
// For tests: the same with a session that the caller made.
CUresult initialize_with(Session* session);

// CUDA_SUCCESS, NOT_INITIALIZED (before cuInit, in a forked child), DEINITIALIZED (the process is ending).
CUresult ready();

// Devices after CUDA_VISIBLE_DEVICES; ordinals of the guest.
std::uint32_t device_count();
// What must hold before a device can be asked about.
CUresult check_device(CUdevice device);
const ring::DeviceInfo& device_info(std::uint32_t ordinal);
PrimaryContext& primary(std::uint32_t ordinal);
// The device whose primary context this is, or -1.
int device_of_context(CUcontext context);

// Context and fault checks of a call that crosses the ring: the device whose context is current in `device`, or what to
// return.
CUresult enter(std::uint32_t& device);

// The same for a call that needs no context: the current one's device, or the first. Faults of a context are not its.
CUresult enter_without_context(std::uint32_t& device);

// Whether a device's primary context lives: CUDA_SUCCESS, CONTEXT_IS_DESTROYED, or the fault that has ended it.
CUresult state_of(std::uint32_t device);

// Ends the session: the program exits.
void finish();

}  // namespace guest
