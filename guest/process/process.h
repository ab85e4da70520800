// This process: whether CUDA is initialised in it, and its devices.
//
// Nothing happens before cuInit: no descriptor, no thread, no mapping. After fork each call of
// the child returns NOT_INITIALIZED; it never touches the parent's rings. Nothing is ever destroyed.
#pragma once

#include <cstdint>

#include "guest/process/context.h"
#include "guest/session/session.h"

namespace guest {

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

// Ends the session: the program exits.
void finish();

}  // namespace guest
