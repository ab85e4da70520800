// Tells the scheduler which channels the driver library has made on each GPU (ring/ops/gpu_use.h), as the worker's ioctl() sees
// them. It begins before the driver's start.
//
// Thread-safety: any thread may call.
#pragma once

#include <cstdint>

#include "ring/ops/gpu_use.h"

namespace host::worker {

// Null: to nobody.
void tell_channels_in(ring::UsePage* page);
// After an ioctl() of this process that returned 0.
void note_request(int fd, unsigned long request, const void* argument);
// The driver library's client of the resource manager; 0: it has made no channel.
std::uint32_t rm_client();

}  // namespace host::worker
